# torch 2.13.0: hookcheck repro HO-03
# /// script
# dependencies = ["torch"]
# ///
"""spectral_norm, undone: A load pre-hook is called before loading with the module and the
seven arguments of ``_load_from_state_dict``."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

from contextlib import suppress

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 5):
    raise SystemExit(3)


def plain(value):
    return value.tolist() if isinstance(value, torch.Tensor) else value


def check(name, observed, expected):
    observed, expected = plain(observed), plain(expected)
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(1 if name == "arguments of the calls" else 2)


torch.manual_seed(0)

hosted_module = nn.Linear(1, 1, bias=False)
if "weight" in hosted_module._parameters:
    weight = hosted_module.weight.detach().clone()
    nn.utils.spectral_norm(hosted_module)
    nn.utils.remove_spectral_norm(hosted_module)
    hosted_module.weight.data.copy_(weight)
nn.init.constant_(hosted_module.weight, 3)
net = nn.Sequential(hosted_module)
log = []


def seen(module, state, prefix, meta, strict, *lists):
    log.append((type(module).__name__, net[0].weight.item(), prefix, strict, *lists))


def renamed(module, state, prefix, *others):
    state[f"{prefix}weight"] = state.pop(f"{prefix}kernel")
    return "ignored"


handles = [module.register_load_state_dict_pre_hook(seen) for module in (net, net[0])]
net[0].register_load_state_dict_pre_hook(renamed)
state = {"0.kernel": torch.tensor([[5.0]])}
with suppress(Exception):
    net.load_state_dict(state)
check("the weight that is loaded", net[0].weight, [[5]])
expected = [("Sequential", 3.0, "", True, [], [], []), ("Linear", 3.0, "0.", True, [], [], [])]
check("arguments of the calls", list(log), expected)
