# torch 2.13.0: hookcheck repro HO-03
# /// script
# dependencies = ["torch"]
# ///
"""spectral_norm, undone: A load pre-hook is called before loading with the module and the …"""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

from contextlib import suppress

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 5):
    raise SystemExit(3)


def plain(value):
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))
    return value.tolist() if isinstance(value, torch.Tensor) else value


def check(name, observed, expected):
    observed, expected = plain(observed), plain(expected)
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(1 if name == "arguments of the calls" else 2)


torch.manual_seed(0)

module = nn.Linear(1, 1, bias=False)
if "weight" in module._parameters:
    weight = module.weight.detach().clone()
    nn.utils.spectral_norm(module)
    nn.utils.remove_spectral_norm(module)
    module.weight.data.copy_(weight)
nn.init.constant_(module.weight, 3)
net = nn.Sequential(module)
log = []


def renamed(module, state, prefix, *others):
    state[f"{prefix}weight"] = state.pop(f"{prefix}kernel")
    return "ignored"


net[0].register_load_state_dict_pre_hook(renamed)
state = {"0.kernel": torch.tensor([[5.0]])}
with suppress(Exception):
    net.load_state_dict(state)
check("the weight that is loaded", net[0].weight, [[5]])
expected = [("Sequential", 3.0, "", True, [], [], []), ("Linear", 3.0, "0.", True, [], [], [])]
check("arguments of the calls", list(log), expected)
