# /// script
# dependencies = ["torch"]
# ///
"""A removed hook on all modules leaves its with_kwargs flag, by which another hook is called."""

import inspect
import pickle

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from torch.utils.hooks import RemovableHandle

if "with_kwargs" not in inspect.signature(register_module_forward_hook).parameters:
    raise SystemExit(3)


def arguments(*args):
    return len(args)


# A module is pickled where as many hooks were registered as here, as in another process.
number = RemovableHandle.next_id
net = nn.Identity()
net.register_forward_hook(arguments)
pickled = pickle.dumps(net)
control = pickle.loads(pickled)(torch.ones(1))
del net
RemovableHandle.next_id = number
register_module_forward_hook(print, with_kwargs=True).remove()
experiment = pickle.loads(pickled)(torch.ones(1))
print("arguments of the hook:", control)
print("after another hook was removed:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != 3 else 0 if experiment == control else 1)
