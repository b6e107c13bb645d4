# /// script
# dependencies = ["torch"]
# ///
"""remove_spectral_norm leaves a hook behind: the module refuses its own state dict."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.remove_spectral_norm.html

from torch import nn

net = nn.Linear(2, 2)
nn.utils.spectral_norm(net)
nn.utils.remove_spectral_norm(net)
hooks = net._load_state_dict_pre_hooks.values()
left = [type(getattr(hook, "hook", hook)).__name__ for hook in hooks]
try:
    print(left, net.load_state_dict(net.state_dict()))
except RuntimeError as error:
    print(left, error)
    raise SystemExit(1) from None
raise SystemExit(1 if left else 0)
