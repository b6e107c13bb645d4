# /// script
# dependencies = ["torch"]
# ///
"""A module refuses full backward hooks for good after a legacy hook that was removed."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

from torch import nn
from torch.nn.modules import module

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


def outcome(first, full):
    first(print).remove()
    try:
        full(print).remove()
    except RuntimeError as error:
        return str(error)
    return "registered"


net = nn.Identity()
control = outcome(net.register_full_backward_hook, net.register_full_backward_hook)
net = nn.Identity()
own = outcome(net.register_backward_hook, net.register_full_backward_hook)
on_all = outcome(module.register_module_backward_hook, module.register_module_full_backward_hook)
print("control, a module, after a full hook that was removed: ", control)
print("experiment, a module, after a legacy hook that was:    ", own)
print("experiment, all modules, after a legacy hook that was: ", on_all)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != "registered" else 0 if own == on_all == "registered" else 1)
