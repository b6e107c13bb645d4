# torch 2.15.0: hookcheck repro SI-01
# /// script
# dependencies = ["torch"]
# ///
"""register_forward_pre_hook after deepcopy, removed by a copied handle: TypeError: cannot
create weak reference to …"""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import copy

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 0):
    raise SystemExit(3)


def run(experiment):
    net = nn.Linear(1, 1)
    handle = net.register_forward_pre_hook(lambda *_: None, with_kwargs=True)
    if experiment:
        net = copy.deepcopy(net)
    failure = None
    try:
        copy.copy(handle).remove()
    except Exception as error:
        failure = repr(error)
    return failure


control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if experiment is None else 1)
