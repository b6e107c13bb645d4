# torch 2.15.0: hookcheck repro 8f6fb7d6842512d5 --clause OB-01 --kind multi_grad
# /// script
# dependencies = ["torch"]
# ///
"""register_multi_grad_hook on a module of to_padded_tensor: RuntimeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 2):
    raise SystemExit(3)


class Net(nn.Module):
    def forward(self, x):
        return torch.nested.to_padded_tensor(x, 0.0)


def run(hooked):
    try:
        net = Net()
        x = torch.nested.as_nested_tensor([*torch.ones(1, 1)]).requires_grad_()
        if hooked:
            torch.autograd.graph.register_multi_grad_hook([x], lambda grads: None)
        net(x)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if experiment is None else 1)
