# /// script
# dependencies = ["torch"]
# ///
"""fully_shard drops the hooks of a parameter, and never calls those of register_hook."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html

import torch
import torch.distributed as dist
from torch import nn

try:
    from torch.distributed.fsdp import fully_shard
except ImportError:
    raise SystemExit(3) from None


def calls(sharded):
    log = []
    net = nn.Linear(1, 1, bias=False)
    net.weight.register_hook(lambda grad: log.append("hook before"))
    net.weight.register_post_accumulate_grad_hook(lambda weight: log.append("accumulated, before"))
    if sharded:
        fully_shard(net)
    net.weight.register_hook(lambda grad: log.append("hook after"))
    net.weight.register_post_accumulate_grad_hook(lambda weight: log.append("accumulated, after"))
    net(torch.ones(1, 1)).sum().backward()
    return log


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
control, experiment = calls(sharded=False), calls(sharded=True)
dist.destroy_process_group()
print("control:   ", control)
print("experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if len(control) != 4 else 0 if sorted(experiment) == sorted(control) else 1)
