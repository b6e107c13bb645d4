# torch 2.15.0: hookcheck repro 10d5ed21f095fe69 --clause BW-03 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on a module of Transformer: StopIteration."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

from collections import namedtuple

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 3):
    raise SystemExit(3)

LeftTuple = namedtuple("LeftTuple", ["left"])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m1 = nn.Transformer(
            1,
            1,
            num_encoder_layers=1,
            num_decoder_layers=1,
            dim_feedforward=1,
            dropout=0.0,
            bias=False,
        )

    def forward(self, x, a0):
        return {"left": LeftTuple(self.m1(x, a0))}


def run(hooked):
    net = Net()
    if hooked:
        net.register_backward_hook(lambda *args: None)
    net(torch.ones(1, 1, 1), torch.ones(1, 1, 1))["left"][0].backward()


run(hooked=False)  # the control raises nothing
try:
    run(hooked=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
