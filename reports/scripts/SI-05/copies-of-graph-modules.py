# torch 2.15.0: hookcheck repro SI-05
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on GraphModule after deepcopy: a hook is not called."""

import copy

import torch
from torch import nn

try:
    import torch.fx
except ImportError:
    raise SystemExit(3) from None

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 0):
    raise SystemExit(3)


def run(experiment):
    calls = []
    net = nn.Linear(1, 1)
    if experiment:
        net = torch.fx.symbolic_trace(net)
    x = torch.ones(1, 1, requires_grad=True)
    net.register_full_backward_hook(lambda *_: calls.append("a"))
    net = copy.deepcopy(net)
    net(x).backward()
    return calls


expected = ["a"]  # the hook is called once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
