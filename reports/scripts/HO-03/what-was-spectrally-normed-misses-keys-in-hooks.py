# torch 2.13.0: hookcheck repro HO-03
# /// script
# dependencies = ["torch"]
# ///
"""spectral_norm, undone: A load post-hook is called after loading as ``(module,
incompatible_keys)`` with the lists of keys at odds."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 12):
    raise SystemExit(3)


def check(name, observed, expected):
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(1 if name == "calls" else 2)


torch.manual_seed(0)

for experiment in (False, True):
    hosted_module = nn.Linear(1, 1)
    if experiment:
        if "weight" in hosted_module._parameters:
            weight = hosted_module.weight.detach().clone()
            nn.utils.spectral_norm(hosted_module)
            nn.utils.remove_spectral_norm(hosted_module)
            hosted_module.weight.data.copy_(weight)
    net = nn.Sequential(hosted_module)
    log = []

    def seen(module, keys):
        log.append(
            (
                type(module).__name__,
                net[0].weight.item(),
                list(keys.missing_keys),
                list(keys.unexpected_keys),
            )
        )

    handles = [module.register_load_state_dict_post_hook(seen) for module in (net, net[0])]
    net.load_state_dict(
        {"0.weight": torch.tensor([[5.0]]), "0.extra": torch.zeros(1)}, strict=False
    )
    name = "calls" if experiment else "without spectral_norm"
    check(
        name,
        list(log),
        [("Linear", 5.0, ["0.bias"], ["0.extra"]), ("Sequential", 5.0, ["0.bias"], ["0.extra"])],
    )
