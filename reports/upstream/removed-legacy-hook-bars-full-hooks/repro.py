# /// script
# dependencies = ["torch"]
# ///
"""A module refuses full backward hooks for good after a legacy hook that was removed."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_full_backward_hook

from torch import nn
from torch.nn.modules import module

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


def outcome(legacy, full):
    legacy(print).remove()
    try:
        full(print).remove()
    except RuntimeError as error:
        return str(error)
    return "registered"


net = nn.Identity()
own = outcome(net.register_backward_hook, net.register_full_backward_hook)
on_all = outcome(module.register_module_backward_hook, module.register_module_full_backward_hook)
print("a module:   ", own)
print("all modules:", on_all)
raise SystemExit(0 if own == on_all == "registered" else 1)
