# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of Linear: grad_output[0] is a Tensor, not None."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        return self.m0(x)


def run(experiment):
    """The grad_output of each call in the second backward, which is not through the output."""
    calls = []
    net = Net()
    x = torch.ones(1, requires_grad=True)
    net.register_full_backward_hook(
        lambda module, grad_input, grad_output: calls.append(type(grad_output[0]).__name__)
    )
    inputs = [net.m0.weight] if experiment else [net.m0.weight, x]
    g = torch.autograd.grad([net(x)], inputs, create_graph=True, allow_unused=True)
    calls.clear()
    g[0].backward()
    return calls


# No gradient is computed for the output there: the hook gets None, or is not called.
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if "Tensor" in control else 0 if "Tensor" not in experiment else 1)
