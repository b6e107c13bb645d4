# torch 2.15.0: hookcheck repro SI-02
# /// script
# dependencies = ["torch"]
# ///
"""register_load_state_dict_pre_hook after shallow copy: RuntimeError: You are trying to call
the hook of a dead Module!."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import copy

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 5):
    raise SystemExit(3)


def run(experiment):
    calls = []
    net = nn.Linear(1, 1)
    net.register_load_state_dict_pre_hook(lambda *_: calls.append("a"))
    if experiment:
        net = copy.copy(net)
    try:
        net.load_state_dict(net.state_dict())
    except Exception as error:
        calls.append(repr(error))
    return calls


expected = ["a"]  # the hook is called once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
