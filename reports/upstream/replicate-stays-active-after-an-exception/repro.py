# /// script
# dependencies = ["torch"]
# ///
"""After an exception in a replicated module, torch.compile splits the graphs of other modules."""
# https://docs.pytorch.org/docs/stable/notes/ddp.html#torchdynamo-ddpoptimizer

import torch
import torch.distributed as dist
from torch import nn

try:
    from torch.distributed._composable.replicate import replicate

    torch.compile(nn.Identity(), backend="eager")
except (ImportError, RuntimeError):  # torch.compile of 2.0 refuses Python 3.11
    raise SystemExit(3) from None


class Net(nn.Linear):
    def forward(self, x):
        raise KeyError("in forward")


def graphs(wrap):
    """How many graphs a module has that is compiled after an exception in another one."""
    count = []
    try:
        wrap(Net(1, 1), bucket_cap_mb=1)(torch.ones(1))
    except KeyError:
        pass
    other = nn.Sequential(nn.Linear(512, 512), nn.Linear(512, 512))
    torch.compile(other, backend=lambda gm, args: count.append(gm) or gm)(torch.ones(512))
    return len(count)


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
control, experiment = graphs(nn.parallel.DistributedDataParallel), graphs(replicate)
dist.destroy_process_group()
print("graphs of another module, compiled after the exception")
print("control, DistributedDataParallel:", control)
print("experiment, replicate:           ", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != 1 else 0 if experiment == control else 1)
