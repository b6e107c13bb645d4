# torch 1.10.2: hookcheck repro cdfec0adaac8c1aa --clause OB-01 --kind output_retain_grad
# /// script
# dependencies = ["torch"]
# ///
"""retain_grad on a module of split: RuntimeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x.split([1, 3, 0], 0)


def run(hooked):
    try:
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
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if experiment is None else 1)
