# /// script
# dependencies = ["torch"]
# ///
"""A forward hook with always_call does not run if forward is interrupted."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import inspect

import torch
from torch import nn

if "always_call" not in inspect.signature(nn.Module.register_forward_hook).parameters:
    raise SystemExit(3)


class Net(nn.Module):
    def forward(self, x, error):
        raise error


def calls(error):
    log = []
    net = Net()
    net.register_forward_hook(lambda *args: log.append("called"), always_call=True)
    try:
        net(torch.ones(1), error)
    except error:
        pass
    return log


control, experiment = calls(ValueError), calls(KeyboardInterrupt)
print("ValueError:       ", control)
print("KeyboardInterrupt:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ["called"] else 0 if experiment == control else 1)
