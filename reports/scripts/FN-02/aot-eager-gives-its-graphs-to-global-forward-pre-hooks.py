# torch 2.13.0: hookcheck repro bddfa635212ffa69 --clause FN-02 --kind acting_forward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_module_forward_pre_hook on Linear under no_grad under torch.compile: it is given
another module."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 7):
    raise SystemExit(3)


def run(experiment):
    calls = []
    net = nn.Linear(1, 1)
    x = torch.ones(1)
    torch.nn.modules.module.register_module_forward_pre_hook(
        torch.compiler.disable(lambda module, args: calls.append(module is net))
    )
    for module in net.modules():
        module.register_forward_pre_hook(torch.compiler.disable(lambda *args: None))
    if experiment:
        with torch.no_grad():
            torch.compile(lambda *args: net(*args), backend="aot_eager")(x)
    net(x)
    return all(calls)


control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if not control else 0 if experiment else 1)
