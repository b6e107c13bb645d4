# torch 1.8.1: hookcheck repro SM-01
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook: a call under no_grad raises AttributeError: 'NoneType' object
has no attribute 'name'."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 8):
    raise SystemExit(3)


def run(experiment):
    calls = []
    try:
        net = nn.Linear(1, 1)
        if experiment:
            net.register_full_backward_hook(lambda *args: calls.append("first"))
        else:
            net.register_forward_pre_hook(lambda *args: calls.append("first"))
        with torch.no_grad():
            net(torch.ones(1, 1, requires_grad=True))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return calls


# A call runs the hooks that there are as it begins: on all modules, on its own; prepended first.
expected = []
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ["first"] else 0 if experiment == expected else 1)
