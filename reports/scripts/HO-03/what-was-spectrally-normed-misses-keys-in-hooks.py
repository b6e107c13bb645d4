# torch 2.13.0: hookcheck repro HO-03
# /// script
# dependencies = ["torch"]
# ///
"""spectral_norm, undone: A load post-hook is called after loading as ``(module, …"""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
# no control: the fault shows whichever part is left out or changed

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 12):
    raise SystemExit(3)


def plain(value):
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))
    return value.tolist() if isinstance(value, torch.Tensor) else value


def check(name, observed, expected):
    observed, expected = plain(observed), plain(expected)
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(1)


torch.manual_seed(0)

hosted_module = nn.Linear(1, 1)
if "weight" in hosted_module._parameters:
    weight = hosted_module.weight.detach().clone()
    nn.utils.spectral_norm(hosted_module)
    nn.utils.remove_spectral_norm(hosted_module)
    hosted_module.weight.data.copy_(weight)
net = nn.Sequential(hosted_module)
log = []

net.load_state_dict({"0.weight": torch.tensor([[5.0]]), "0.extra": torch.zeros(1)}, strict=False)
check(
    "calls",
    list(log),
    [("Linear", 5.0, ["0.bias"], ["0.extra"]), ("Sequential", 5.0, ["0.bias"], ["0.extra"])],
)
