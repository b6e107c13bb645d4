# torch 2.15.0: hookcheck repro 8a99624ae6e3ea4d --clause OB-05 --kind global_forward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_forward_hook under torch.compile warns although the hook returns None."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import warnings

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def run(hooked):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net = nn.Tanh()
        x = torch.ones((), requires_grad=True)
        if hooked:
            torch.nn.modules.module.register_module_forward_hook(
                torch.compiler.disable(lambda *args: None)
            )
        torch.compile(net, backend="eager")(x)
    return [str(w.message) for w in caught]


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if not experiment or set(experiment) <= set(control) else 1)
