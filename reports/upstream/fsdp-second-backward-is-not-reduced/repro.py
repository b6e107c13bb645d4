# /// script
# dependencies = ["torch"]
# ///
"""FSDP neither reduces a second backward through one forward nor calls its comm hook."""
# https://docs.pytorch.org/docs/stable/fsdp.html

import torch
import torch.distributed as dist
from torch import nn

try:
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
except ImportError:
    raise SystemExit(3) from None


def reduced(forwards):
    log = []
    net = nn.Linear(1, 1, bias=False)
    whole, cpu = ShardingStrategy.NO_SHARD, torch.device("cpu")
    root = FullyShardedDataParallel(
        net, sharding_strategy=whole, device_id=cpu, use_orig_params=True
    )
    root.register_comm_hook(None, lambda state, grad: log.append(grad.tolist()))
    x = torch.ones(1, 1)
    outputs = [root(x)] if forwards == 1 else []
    for _ in range(2):
        output = outputs[0] if outputs else root(x)
        output.sum().backward(retain_graph=True)
    return log, net.weight.grad.tolist()


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
control, experiment = reduced(forwards=2), reduced(forwards=1)
dist.destroy_process_group()
print("control, two forwards:  ", control)
print("experiment, one forward:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if len(control[0]) != 2 else 0 if experiment == control else 1)
