# /// script
# dependencies = ["torch"]
# ///
"""No hook of a net is called by compiled code where one like it was compiled before without."""
# https://docs.pytorch.org/docs/stable/torch.compiler_nn_module.html, "Hooks Usage and limitations"

import torch
from torch import nn

if not hasattr(torch, "compile") or not hasattr(torch, "compiler"):
    raise SystemExit(3)

KINDS = ("forward_pre", "forward", "full_backward_pre", "full_backward")


def run(others):
    """Kinds of hooks on a part of a net that are called, where others were compiled before it."""
    torch._dynamo.reset()
    called = []
    for number in range(others + 1):
        net = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
        if number == others:
            for kind in KINDS:
                register = getattr(net[1], f"register_{kind}_hook")
                register(lambda *_, kind=kind: called.append(kind))
        torch.compile(net, backend="eager")(torch.ones(1, 1)).sum().backward()
    return sorted(called)


control, experiment = run(others=0), run(others=1)
print("control:   ", control)
print("experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != sorted(KINDS) else 0 if experiment == control else 1)
