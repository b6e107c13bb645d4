# torch 2.15.0: hookcheck repro HO-03
# /// script
# dependencies = ["torch"]
# ///
"""spectral_norm, undone: A private load pre-hook is called without the module unless it was
registered with ``with_module``."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 10):
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
    net = nn.Sequential(hosted_module)
    net[0]._register_load_state_dict_pre_hook(lambda *arguments: None)
    net[0]._register_load_state_dict_pre_hook(lambda *arguments: None, with_module=True)
    name = "load_state_dict works" if experiment else "without spectral_norm"
    check(name, failure(lambda: net.load_state_dict(net.state_dict())), None)
