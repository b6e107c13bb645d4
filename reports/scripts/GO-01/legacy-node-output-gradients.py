# torch 2.15.0: hookcheck repro 46248f70de13d069 --clause GO-01 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on a module of CosineSimilarity: grad_output[0] is wrong."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 0):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.CosineSimilarity(dim=-1)

    def forward(self, x, a0):
        h0 = self.m0(x, a0)
        return (h0, h0)


def run(register):
    calls = []
    net = Net()
    x = torch.tensor([1.0], requires_grad=True)
    a0 = torch.tensor(1.0)
    getattr(net, register)(lambda _, grad_input, grad_output: calls.append(grad_output))
    y = net(x, a0)
    torch.autograd.backward([y[0], y[1]])
    return calls[0][0].item()


expected = 1.0  # chain rule: CosineSimilarity da = v (b / (α β) - y a / (α |a|))
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
if not abs(control - expected) <= 5e-04:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
