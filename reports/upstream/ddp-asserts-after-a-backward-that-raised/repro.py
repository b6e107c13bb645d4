# /// script
# dependencies = ["torch"]
# ///
"""After a backward that raised, an assertion of DDP fails where an error is meant."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html

import torch
import torch.distributed as dist
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)


def fail(*arguments):
    raise ValueError("on purpose")


def after(part):
    """What a step says after one whose backward a hook of that part breaks off."""
    net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    wrapper = nn.parallel.DistributedDataParallel(net)
    x = torch.ones(1, 1, requires_grad=True)
    handle = net[part].register_full_backward_hook(fail)
    try:
        wrapper(x).sum().backward()
    except ValueError:
        handle.remove()
    try:
        wrapper(x).sum().backward()
    except RuntimeError as error:
        return str(error).splitlines()[0][:100]
    return "nothing"


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
control, experiment = after(part=1), after(part=0)
dist.destroy_process_group()
print("control, a gradient is missing:    ", control)
print("experiment, all gradients are there:", experiment)
if "finished reduction in the prior iteration" not in control:
    raise SystemExit(2)  # the control fails
raise SystemExit(1 if "INTERNAL ASSERT" in experiment else 0)
