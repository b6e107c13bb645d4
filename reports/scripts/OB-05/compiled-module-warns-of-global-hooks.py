# torch 2.15.0: hookcheck repro 46bab32e635a71a6 --clause OB-05 --kind global_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_backward_hook on Linear under torch.compile warns although the hook …"""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import warnings

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def run(hooked):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net = nn.Linear(1, 1, bias=False)
        x = torch.ones(1)
        if hooked:
            torch.nn.modules.module.register_module_backward_hook(
                torch.compiler.disable(lambda *args: None)
            )
        torch.compile(net, backend="eager")(x)
    return [str(w.message) for w in caught]


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if not experiment or set(experiment) <= set(control) else 1)
