# torch 2.15.0: hookcheck repro 774b099193998534 --clause TN-06 --kind multi_grad
# /// script
# dependencies = ["torch"]
# ///
"""register_multi_grad_hook: the gradient is wrong."""
# https://docs.pytorch.org/docs/stable/autograd.html

import torch
from torch import nn

if not hasattr(getattr(torch.autograd, "graph", None), "register_multi_grad_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.InstanceNorm2d(3, eps=2.0)

    def forward(self, x):
        h2 = self.m0(x).permute(3, 2, 0, 1).transpose(-4, -3)
        return (h2, h2)


class Control(Net):
    def forward(self, x):
        h2 = x.permute(3, 2, 0, 1).transpose(-4, -3)
        return (h2, h2)


def run(experiment):
    calls = []
    net = (Net if experiment else Control)()
    x = torch.arange(1.0, 37).reshape(2, 3, 3, 2).requires_grad_()
    torch.autograd.graph.register_multi_grad_hook([x], calls.append)
    net(x)[1].backward(torch.arange(1.0, 37).reshape(3, 2, 2, 3))
    return calls[0][0][0, 0, 0, 0].item()


expected = -2.7517888  # chain rule: Transpose, then Permute, then InstanceNorm2d
expected_of_control = 1.0  # chain rule: Transpose, then Permute
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
if not abs(control - expected_of_control) <= 2e-02:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 1e-03 else 1)
