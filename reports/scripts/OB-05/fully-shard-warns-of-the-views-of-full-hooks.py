# torch 2.15.0: hookcheck repro a2a7fb325824285a --clause OB-05 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of Linear warns although the hook returns None: …"""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import warnings

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


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        return self.m0(x)


def run(hooked):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net = Net()
        x = torch.ones(1)
        if hooked:
            for module in net.modules():
                module.register_full_backward_hook(lambda *args: None)
        sharded(net)(x)
    return [str(w.message) for w in caught]


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if not experiment or set(experiment) <= set(control) else 1)
