# torch 2.15.0: hookcheck repro 054ac05f5d15ec4d --clause GO-02 --kind full_backward
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
    calls = []
    net = Net()
    x = torch.ones(1, requires_grad=True)
    net.register_full_backward_hook(lambda _, grad_input, grad_output: calls.append(grad_output))
    if experiment:
        g = torch.autograd.grad(net(x), net.m0.weight, create_graph=True, allow_unused=True)
        g[0].backward()
    else:
        y = net(x)
        torch.autograd.grad(y, net.m0.weight, create_graph=True)
        y.backward()
    return type(calls[0][0]).__name__ if len(calls) > 0 else None


expected = "NoneType"  # no gradient is computed there
expected_of_control = "Tensor"  # its gradient is computed
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# None: the hook is not called that often, and need not be
if control != expected_of_control:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if experiment is None or experiment == expected else 1)
