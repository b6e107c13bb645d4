# /// script
# dependencies = ["torch"]
# ///
"""FullyShardedDataParallel with use_orig_params never calls the hooks of a parameter."""
# https://docs.pytorch.org/docs/stable/fsdp.html

import torch
import torch.distributed as dist
from torch import nn

try:
    from torch.distributed.fsdp import FullyShardedDataParallel
except ImportError:
    raise SystemExit(3) from None
if not hasattr(nn.Parameter, "register_post_accumulate_grad_hook"):
    raise SystemExit(3)


def calls(wrapped):
    log = []
    net = nn.Linear(1, 1, bias=False)
    weight = net.weight
    weight.register_hook(lambda grad: log.append("hook"))
    weight.register_post_accumulate_grad_hook(lambda weight: log.append("accumulated"))
    if wrapped:
        net = FullyShardedDataParallel(net, use_orig_params=True, device_id=torch.device("cpu"))
        if next(net.parameters()) is not weight:
            raise SystemExit(2)  # a replaced parameter would lose its hooks for that
    net(torch.ones(1, 1)).sum().backward()
    if weight.grad is None:
        raise SystemExit(2)  # without a gradient no hook is due
    return log


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
control, experiment = calls(wrapped=False), calls(wrapped=True)
dist.destroy_process_group()
print("control:   ", control)
print("experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ["hook", "accumulated"] else 0 if experiment == control else 1)
