# torch 2.15.0: hookcheck repro 9c83dab855836676 --clause BW-02 --kind global_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_backward_hook on Sigmoid under torch.compile: RuntimeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def run(hooked):
    try:
        net = nn.Sigmoid()
        x = torch.ones((), requires_grad=True)
        if hooked:
            torch.nn.modules.module.register_module_backward_hook(
                torch.compiler.disable(lambda *args: None)
            )
        y = torch.compile(net, backend="aot_eager")(x)
        y.backward(retain_graph=True)
        y.backward()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if experiment is None else 1)
