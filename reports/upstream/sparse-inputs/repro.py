# /// script
# dependencies = ["torch"]
# ///
"""A full backward hook makes forward raise where a module is given a sparse tensor."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        return self.fc(x.to_dense())


def run(hooked):
    net = Net()
    x = torch.ones(2, 3).to_sparse().requires_grad_()
    if hooked:
        net.register_full_backward_hook(lambda *args: None)
    try:
        net(x).sum().backward()
    except (RuntimeError, NotImplementedError) as error:
        return f"{type(error).__name__}: {str(error).partition('.')[0]}"
    return "no error"


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != "no error" else 0 if experiment == control else 1)
