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


def calls(wrapped):
    log = []
    net = nn.Linear(1, 1, bias=False)
    weight = net.weight
    weight.register_hook(lambda grad: log.append("hook"))
    weight.register_post_accumulate_grad_hook(lambda weight: log.append("accumulated"))
    if wrapped:
        net = FullyShardedDataParallel(net, use_orig_params=True, device_id=torch.device("cpu"))
        assert next(net.parameters()) is weight
    net(torch.ones(1, 1)).sum().backward()
    assert weight.grad is not None
    return log


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
control, experiment = calls(wrapped=False), calls(wrapped=True)
dist.destroy_process_group()
print("control:   ", control)
print("experiment:", experiment)
assert control == ["hook", "accumulated"], "the control fails"
raise SystemExit(0 if experiment == control else 1)
