# torch 1.8.0: hookcheck repro 02bcf132a70410eb --clause GO-02 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on Sigmoid: grad_output[0] is a Tensor, not None."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1, bias=False)
        self.m1 = nn.Sigmoid()

    def forward(self, x):
        return self.m1(self.m0(x))


def run(experiment):
    calls = []
    net = Net()
    if experiment:
        x = torch.ones(1)
        net.m1.register_full_backward_hook(
            lambda _, grad_input, grad_output: calls.append(grad_output)
        )
        g = torch.autograd.grad(net(x), net.m0.weight, create_graph=True, allow_unused=True)
        g[0].backward()
    else:
        net.m1.register_full_backward_hook(
            lambda _, grad_input, grad_output: calls.append(grad_output)
        )
        y = net(torch.ones(1))
        torch.autograd.grad(y, net.m0.weight, create_graph=True)
        y.backward()
    return type(calls[1][0]).__name__ if len(calls) > 1 else None


expected = "NoneType"  # no gradient is computed there
expected_of_control = "Tensor"  # its gradient is computed
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# None: the hook is not called that often, and need not be
if control != expected_of_control:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if experiment is None or experiment == expected else 1)
