# torch 2.15.0: hookcheck repro 774b099193998534 --clause TN-01 --kind tensor
# /// script
# dependencies = ["torch"]
# ///
"""register_hook on a module of InstanceNorm2d and permute and transpose: the gradient is wrong."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.InstanceNorm2d(3)

    def forward(self, x):
        h2 = self.m0(x).permute(3, 2, 0, 1).transpose(-4, -3)
        return (h2, h2)


def run():
    calls = []
    net = Net()
    x = (
        torch.tensor(
            [[[[32, 64]], [[96, 128]], [[160, 192]]], [[[224, 256]], [[288, 320]], [[352, 384]]]],
            dtype=torch.float64,
        )
        / 32
    ).requires_grad_()
    v_y0 = (
        torch.tensor(
            [[[[32, 64, 96], [128, 160, 192]], [[224, 256, 288], [320, 352, 384]]]],
            dtype=torch.float64,
        )
        / 32
    )
    x.register_hook(calls.append)
    net(x)[1].backward(v_y0)
    return calls[0][0, 1, 0, 1].item()


expected = 0.0002399856  # chain rule: Transpose, then Permute, then InstanceNorm2d
experiment = run()
print("experiment:", experiment)
raise SystemExit(0 if abs(experiment - expected) <= 1e-06 else 1)
