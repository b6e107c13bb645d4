# torch 1.12.1: hookcheck repro SI-02
# /// script
# dependencies = ["torch"]
# ///
"""_register_load_state_dict_pre_hook on GraphModule after deepcopy, removed: a hook is called
too often."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import copy

import torch
from torch import nn

try:
    import torch.fx
except ImportError:
    raise SystemExit(3) from None

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 11):
    raise SystemExit(3)


def part(net, index):
    return vars(vars(net)["_modules"].get("module", net))["_modules"][str(index)]


def run(experiment):
    calls = []
    net = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    net = torch.fx.symbolic_trace(net)
    handle = part(net, 0)._register_load_state_dict_pre_hook(
        lambda *_: calls.append("a"), with_module=True
    )
    net, handle = copy.deepcopy((net, handle))
    if experiment:
        handle.remove()
    net.load_state_dict(net.state_dict())
    return calls


expected = []  # each hook that was not removed is called
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ["a"] else 0 if experiment == expected else 1)
