# /// script
# dependencies = ["torch"]
# ///
"""The load_state_dict pre-hook of a shallow copy is given the module that was copied."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import copy

import torch

if not hasattr(torch.nn.Module, "register_load_state_dict_pre_hook"):
    raise SystemExit(3)


def run(copied):
    given = []
    net = torch.nn.Linear(1, 1)
    net.register_load_state_dict_pre_hook(lambda module, *args: given.append(module))
    copied = copied(net)
    copied.load_state_dict(copied.state_dict())
    return given[0] is copied


control, experiment = run(copy.deepcopy), run(copy.copy)
print("the hook is given the copy: control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if not control else 0 if experiment else 1)
