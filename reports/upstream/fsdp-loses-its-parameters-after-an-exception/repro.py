# /// script
# dependencies = ["torch"]
# ///
"""After an exception in forward, FSDP gives the optimizer's parameters no gradient."""
# https://docs.pytorch.org/docs/stable/fsdp.html

import torch
import torch.distributed as dist
from torch import nn

try:
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
except ImportError:
    raise SystemExit(3) from None


def fail(*arguments):
    raise ValueError("on purpose")


def step(raises):
    """Which parameters of the optimizer a step gives gradients, and how many the root has."""
    net = nn.Sequential(nn.LayerNorm(2), nn.LayerNorm(2))
    whole, cpu = ShardingStrategy.NO_SHARD, torch.device("cpu")
    root = FullyShardedDataParallel(
        net, sharding_strategy=whole, device_id=cpu, use_orig_params=True
    )
    optimizer = torch.optim.SGD(root.parameters(), lr=1.0)
    x = torch.tensor([[1.0, 2.0]])
    if raises:
        handle = net[1].register_forward_hook(fail)
        try:
            root(x)
        except ValueError:
            handle.remove()
    try:
        root(x).sum().backward()
    except RuntimeError as error:
        return str(error)[:70]
    grads = [p.grad for group in optimizer.param_groups for p in group["params"]]
    return [grad is not None for grad in grads], len(list(root.parameters()))


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
control, experiment = step(raises=False), step(raises=True)
dist.destroy_process_group()
print("control, no exception:       ", control)
print("experiment, a hook has raised:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ([True] * 4, 4) else 0 if experiment == control else 1)
