# torch 1.8.0: hookcheck repro cdfec0adaac8c1aa --clause OB-01 --kind output_retain_grad
# /// script
# dependencies = ["torch"]
# ///
"""retain_grad on a module of split: AttributeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x.split([1, 3, 0], 0)


def run(hooked):
    calls = []
    net = Net()
    x = torch.ones(4, requires_grad=True)
    if hooked:

        def watch(module, args, output):
            for tensor in output:
                if tensor.requires_grad:
                    tensor.retain_grad()
                    calls.append(tensor)

        net.register_forward_hook(watch)
    net(x)[0].backward()


run(hooked=False)  # the control raises nothing
try:
    run(hooked=True)
except Exception as error:
    print(f"experiment: {type(error).__name__}: {error}")
    raise SystemExit(1)
