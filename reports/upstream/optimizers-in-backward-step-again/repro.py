# /// script
# dependencies = ["torch"]
# ///
"""Of two optimizers that _apply_optimizer_in_backward puts on a parameter, each steps twice."""
# https://docs.pytorch.org/docs/stable/distributed.optim.html

import torch
from torch import nn

try:
    from torch.distributed.optim import _apply_optimizer_in_backward as apply
except ImportError:
    raise SystemExit(3) from None


def steps(count):
    log = []
    weight = nn.Parameter(torch.ones(1))
    for _ in range(count):
        apply(torch.optim.SGD, [weight], {"lr": 1.0})
    for number, optimizer in enumerate(weight._in_backward_optimizers):
        optimizer.register_step_pre_hook(
            lambda *args, number=number: log.append((number, weight.grad is not None))
        )
    (2 * weight).sum().backward()
    return log


print("each step: which optimizer, and whether there is a gradient")
control, experiment = steps(1), steps(2)
print("control, one optimizer:    ", control)
print("experiment, two optimizers:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != [(0, True)] else 0 if experiment == [(0, True), (1, True)] else 1)
