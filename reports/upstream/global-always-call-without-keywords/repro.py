# /// script
# dependencies = ["torch"]
# ///
"""After an error in forward a hook on all modules is called without the keywords it asked for."""

import inspect
import warnings

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

if "with_kwargs" not in inspect.signature(register_module_forward_hook).parameters:
    raise SystemExit(3)


class Net(nn.Module):
    def forward(self, x):
        raise ValueError("forward")


def calls(register):
    log = []
    net = Net()

    def hook(module, args, kwargs, output):
        log.append(sorted(kwargs))

    handle = register(net)(hook, with_kwargs=True, always_call=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            net(x=torch.ones(1))
        except ValueError:
            pass
    handle.remove()
    return log


control = calls(lambda net: net.register_forward_hook)
experiment = calls(lambda net: register_module_forward_hook)
print("the module's own hook:", control)
print("a hook on all modules:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != [["x"]] else 0 if experiment == control else 1)
