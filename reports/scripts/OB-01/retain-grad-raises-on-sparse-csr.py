# torch 2.15.0: hookcheck repro 14e4d1f2c8c62f90 --clause OB-01 --kind output_retain_grad
# /// script
# dependencies = ["torch"]
# ///
"""retain_grad on a module of to_sparse_csr: RuntimeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


class Net(nn.Module):
    def forward(self, x):
        return x.to_sparse_csr()


def run(hooked):
    try:
        calls = []
        net = Net()
        x = torch.ones(1, 1, requires_grad=True)
        if hooked:

            def watch(module, args, output):
                if output.requires_grad:
                    output.retain_grad()
                    calls.append(output)

            net.register_forward_hook(watch)
        net(x).to_dense().backward()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if experiment is None else 1)
