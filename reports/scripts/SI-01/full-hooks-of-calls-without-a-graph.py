# torch 1.8.0: hookcheck repro SI-01
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook, called in no_grad: AttributeError: 'NoneType' object has no
attribute 'name'."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 8):
    raise SystemExit(3)


def run(experiment):
    net = nn.Linear(1, 1)
    x = torch.ones(1, 1, requires_grad=True)
    if experiment:
        net.register_full_backward_hook(lambda *_: None)
    failure = None
    try:
        torch.no_grad()(lambda: net(x))()
    except Exception as error:
        failure = repr(error)
    return failure


control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control is not None else 0 if experiment is None else 1)
