# /// script
# dependencies = ["torch"]
# ///
"""Optimizers of torch.distributed that hold another one raise when a step hook is registered."""
# https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.register_step_post_hook.html

import torch
from torch import nn
from torch.optim import SGD, Optimizer

if not hasattr(Optimizer, "register_step_post_hook") or not torch.distributed.is_available():
    raise SystemExit(3)
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer


def outcome(optimizer):
    if not isinstance(optimizer, Optimizer):
        raise SystemExit(2)  # what is no Optimizer need not have its methods
    try:
        optimizer.register_step_post_hook(print)
    except AttributeError as error:
        return str(error)
    return "registered"


torch.distributed.init_process_group(
    "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
)
sgd = SGD(nn.Linear(1, 1).parameters(), lr=0.1)
control = outcome(sgd)
experiment = outcome(PostLocalSGDOptimizer(sgd, PeriodicModelAverager(period=1)))
torch.distributed.destroy_process_group()
print("SGD:                  ", control)
print("PostLocalSGDOptimizer:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != "registered" else 0 if experiment == control else 1)
