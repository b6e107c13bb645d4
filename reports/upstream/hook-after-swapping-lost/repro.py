# /// script
# dependencies = ["torch"]
# ///
"""A hook that is registered after Module.to swapped a parameter that had a hook is never called."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html

import torch
from torch import nn

if not hasattr(torch.__future__, "set_swap_module_params_on_conversion"):
    raise SystemExit(3)
torch.__future__.set_swap_module_params_on_conversion(True)


def calls(hook_before):
    log = []
    net = nn.Linear(1, 1, bias=False)
    if hook_before:
        net.weight.register_hook(lambda grad: None)
    net.to(torch.float64)
    net.weight.register_hook(lambda grad: log.append("called"))
    net(torch.ones(1, 1, dtype=torch.float64)).sum().backward()
    return log


control, experiment = calls(hook_before=False), calls(hook_before=True)
print("no hook before:", control)
print("a hook before: ", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ["called"] else 0 if experiment == control else 1)
