# /// script
# dependencies = ["torch"]
# ///
"""loss_parallel stays switched on for the whole process after an exception."""
# https://docs.pytorch.org/docs/stable/distributed.tensor.parallel.html

import torch
import torch.distributed as dist
from torch.nn import functional as F

try:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate
    from torch.distributed.tensor.parallel import loss_parallel
except ImportError:
    raise SystemExit(3) from None


def entropy(mesh):
    logits = DTensor.from_local(torch.zeros(1, 2), mesh, [Replicate()])
    target = DTensor.from_local(torch.tensor([0]), mesh, [Replicate()])
    try:
        return round(F.cross_entropy(logits, target).item(), 4)
    except ValueError as error:
        return str(error)


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
mesh = init_device_mesh("cpu", (1,))
with loss_parallel():
    pass
control = entropy(mesh)
try:
    with loss_parallel():
        raise KeyError("in the block")
except KeyError:
    pass
experiment = entropy(mesh)
dist.destroy_process_group()
print("control, after a block:         ", control)
print("experiment, after one that raised:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != 0.6931 else 0 if experiment == control else 1)
