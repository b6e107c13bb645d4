# torch 2.15.0: hookcheck repro SI-02
# /// script
# dependencies = ["torch"]
# ///
"""_register_state_dict_hook on GraphModule after pickle: a hook is not called."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import pickle

import torch
from torch import nn

try:
    import torch.fx
except ImportError:
    raise SystemExit(3) from None

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 8):
    raise SystemExit(3)

calls = []


def a(*_):
    calls.append("a")


def run(experiment):
    calls.clear()
    net = nn.Linear(1, 1)
    if experiment:
        net = torch.fx.symbolic_trace(net)
    net._register_state_dict_hook(a)
    net = pickle.loads(pickle.dumps(net))
    net.state_dict()
    return list(calls)


expected = ["a"]  # the hook is called once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
