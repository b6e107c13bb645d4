# /// script
# dependencies = ["torch"]
# ///
"""remove_spectral_norm leaves a hook behind: the module refuses its own state dict."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.remove_spectral_norm.html

from torch import nn
from torch.nn.utils import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm


def outcome(add, remove):
    """The hooks that are left, and what loading says."""
    net = nn.Linear(2, 2)
    remove(add(net))
    hooks = net._load_state_dict_pre_hooks.values()
    left = [type(getattr(hook, "hook", hook)).__name__ for hook in hooks]
    try:
        return left, str(net.load_state_dict(net.state_dict()))
    except RuntimeError as error:
        return left, str(error)


control = outcome(weight_norm, remove_weight_norm)
experiment = outcome(spectral_norm, remove_spectral_norm)
print("control, weight_norm:     ", *control)
print("experiment, spectral_norm:", *experiment)
if control != ([], "<All keys matched successfully>"):
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if experiment == control else 1)
