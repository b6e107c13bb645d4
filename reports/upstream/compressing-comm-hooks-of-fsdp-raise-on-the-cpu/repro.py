# /// script
# dependencies = ["torch"]
# ///
"""FSDP's fp16_compress_hook and bf16_compress_hook raise on the CPU."""
# https://docs.pytorch.org/docs/stable/fsdp.html

import torch
import torch.distributed as dist
from torch import nn

try:
    from torch.distributed.algorithms._comm_hooks import default_hooks as hooks
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
except ImportError:
    raise SystemExit(3) from None


def gradient(hook, kind):
    net = nn.Linear(1, 1, bias=False)
    whole, cpu = ShardingStrategy.NO_SHARD, torch.device("cpu")
    root = FullyShardedDataParallel(
        net, sharding_strategy=whole, device_id=cpu, use_orig_params=True
    )
    root.register_comm_hook(kind(dist.group.WORLD), hook)
    try:
        root(torch.ones(1, 1)).sum().backward()
    except RuntimeError as error:
        return str(error)
    return net.weight.grad.tolist()


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
control = gradient(hooks.allreduce_hook, hooks.DefaultState)
experiment = gradient(hooks.fp16_compress_hook, hooks.LowPrecisionState)
dist.destroy_process_group()
print("control, allreduce_hook:       ", control)
print("experiment, fp16_compress_hook:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != [[1.0]] else 0 if experiment == control else 1)
