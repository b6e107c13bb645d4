# torch 2.15.0: hookcheck repro HO-03
# /// script
# dependencies = ["torch"]
# ///
"""spectral_norm, undone: A load pre-hook is called before loading with the module and the
seven arguments of ``_load_from_state_dict``."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 5):
    raise SystemExit(3)


def check(name, observed, expected):
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(2 if name == "without spectral_norm" else 1)


def failure(act):
    try:
        act()
    except Exception as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0]


torch.manual_seed(0)

for experiment in (False, True):
    hosted_module = nn.Linear(1, 1, bias=False)
    if experiment:
        if "weight" in hosted_module._parameters:
            weight = hosted_module.weight.detach().clone()
            nn.utils.spectral_norm(hosted_module)
            nn.utils.remove_spectral_norm(hosted_module)
            hosted_module.weight.data.copy_(weight)
    nn.init.constant_(hosted_module.weight, 3)
    net = nn.Sequential(hosted_module)

    def seen(module, state, prefix, meta, strict, *lists):
        pass

    def renamed(module, state, prefix, *others):
        state[f"{prefix}weight"] = state.pop(f"{prefix}kernel")
        return "ignored"

    handles = [module.register_load_state_dict_pre_hook(seen) for module in (net, net[0])]
    net[0].register_load_state_dict_pre_hook(renamed)
    state = {"0.kernel": torch.tensor([[5.0]])}
    name = "without spectral_norm"
    if experiment:
        name = "loading a state_dict whose key a hook renames"
    check(name, failure(lambda: net.load_state_dict(state)), None)
