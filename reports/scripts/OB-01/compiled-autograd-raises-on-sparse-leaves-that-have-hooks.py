# torch 2.11.0: hookcheck repro 5fc85c01e9bc3a72 --clause OB-01 --kind post_accumulate
# /// script
# dependencies = ["torch"]
# ///
"""register_post_accumulate_grad_hook on a module of to_dense: SystemError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
    raise SystemExit(3)


def compiled_autograd():
    from torch._dynamo import compiled_autograd

    return compiled_autograd._enable(lambda graph: graph.forward)


class Net(nn.Module):
    def forward(self, x):
        return x.to_dense()


def run(hooked):
    try:
        net = Net()
        x = torch.ones(1, 1).to_sparse_csr().requires_grad_()
        if hooked:
            x.register_post_accumulate_grad_hook(torch.compiler.disable(lambda *args: None))
        with compiled_autograd():
            y = net(x)
            y.backward()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if experiment is None else 1)
