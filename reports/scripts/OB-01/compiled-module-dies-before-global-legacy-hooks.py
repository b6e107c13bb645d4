# torch 2.15.0: hookcheck repro 46bab32e635a71a6 --clause OB-01 --kind global_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_backward_hook on Linear under torch.compile: RuntimeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def run(hooked):
    try:
        net = nn.Linear(1, 1, bias=False)
        x = torch.ones(1)
        if hooked:
            torch.nn.modules.module.register_module_backward_hook(
                torch.compiler.disable(lambda *args: None)
            )
        torch.compile(net, backend="eager")(x).backward()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if experiment is None else 1)
