# torch 2.15.0: hookcheck repro 168c7fa67b25d458 --clause OB-01 --kind output_retain_grad
# /// script
# dependencies = ["torch"]
# ///
"""retain_grad on a module of to_dense: RuntimeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 8):
    raise SystemExit(3)


class M0(nn.Module):
    def forward(self, x):
        return x.to_mkldnn()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = M0()

    def forward(self, x):
        return self.m0(x).to_dense()


def run(hooked):
    calls = []
    net = Net()
    x = torch.ones(1, requires_grad=True)
    if hooked:

        def watch(module, args, output):
            if output.requires_grad:
                output.retain_grad()
                calls.append(output)

        for module in net.modules():
            module.register_forward_hook(watch)
    net(x).backward()


run(hooked=False)  # the control raises nothing
try:
    run(hooked=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
