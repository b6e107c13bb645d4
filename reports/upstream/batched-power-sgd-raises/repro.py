# /// script
# dependencies = ["torch"]
# ///
"""batched_powerSGD_hook raises an AssertionError as soon as it compresses."""
# https://docs.pytorch.org/docs/stable/ddp_comm_hooks.html#powersgd-communication-hook

import torch
import torch.distributed as dist
from torch import nn

try:
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
except ImportError:
    raise SystemExit(3) from None


def gradient(hook):
    net = nn.Linear(4, 4, bias=False)
    ddp = nn.parallel.DistributedDataParallel(net)
    state = power.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
    ddp.register_comm_hook(state, hook)
    for _ in range(3):  # the third backward is the first one that is compressed
        net.zero_grad()
        try:
            ddp(torch.ones(1, 4)).sum().backward()
        except Exception as error:
            return type(error).__name__
    return [round(entry, 3) for entry in net.weight.grad[0].tolist()]  # all ones: of rank one


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
control, experiment = gradient(power.powerSGD_hook), gradient(power.batched_powerSGD_hook)
dist.destroy_process_group()
print("control, powerSGD_hook:           ", control)
print("experiment, batched_powerSGD_hook:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != [1.0, 1.0, 1.0, 1.0] else 0 if experiment == control else 1)
