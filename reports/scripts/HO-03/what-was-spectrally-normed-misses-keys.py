# torch 2.13.0: hookcheck repro HO-03
# /// script
# dependencies = ["torch"]
# ///
"""spectral_norm, undone: What a load post-hook does to the lists in place is seen by later
hooks and in what ``load_state_dict`` gives."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 12):
    raise SystemExit(3)


def check(name, observed, expected):
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(1 if name == "missing_keys of the result" else 2)


torch.manual_seed(0)

module = nn.Linear(1, 1)
if "weight" in module._parameters:
    weight = module.weight.detach().clone()
    nn.utils.spectral_norm(module)
    nn.utils.remove_spectral_norm(module)
    module.weight.data.copy_(weight)


def edited(module, keys):
    keys.missing_keys.remove("weight")
    keys.unexpected_keys.append("made up")


module.register_load_state_dict_post_hook(edited)
module.register_load_state_dict_post_hook(lambda m, keys: None)
result = module.load_state_dict({"extra": torch.zeros(1)}, strict=False)
check("unexpected_keys of the result", result.unexpected_keys, ["extra", "made up"])
check("missing_keys of the result", result.missing_keys, ["bias"])
