# torch 2.15.0: hookcheck repro a2a7fb325824285a --clause TN-06 --kind multi_grad
# /// script
# dependencies = ["torch"]
# ///
"""register_multi_grad_hook on Linear under fully_shard: the gradient is None, not a Tensor."""
# https://docs.pytorch.org/docs/stable/autograd.html

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 7):
    raise SystemExit(3)


def process_group():
    if not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


def sharded(module):
    process_group()
    own = dict(module.named_parameters())
    whole = fully_shard(module, mesh=init_device_mesh("cpu", (1,)))
    for name, shard in module.named_parameters():
        shard.register_post_accumulate_grad_hook(
            lambda s, held=own[name]: setattr(held, "grad", s.grad.to_local())
        )
    return whole


def run(experiment):
    calls = []
    net = nn.Linear(1, 1, bias=False)
    x = torch.ones(1, requires_grad=True)
    torch.autograd.graph.register_multi_grad_hook([net.weight, x], calls.append)
    if experiment:
        sharded(net)(x).backward()
    else:
        net(x).backward()
    return type(calls[0][0]).__name__


expected = "Tensor"  # its gradient is computed
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
