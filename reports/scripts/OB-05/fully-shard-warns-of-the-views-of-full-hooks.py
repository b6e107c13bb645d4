# torch 2.15.0: hookcheck repro 389e605063b03cf6 --clause OB-05 --kind global_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook under fully_shard warns although the hook returns None."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 7):
    raise SystemExit(3)


def sharded(module):
    if not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    old = dict(module.named_parameters())
    (device,) = {p.device.type for p in old.values()} or {"cpu"}
    whole = fully_shard(module, mesh=init_device_mesh(device, (1,)))
    for name, shard in module.named_parameters():
        shard.register_post_accumulate_grad_hook(
            lambda s, held=old[name]: setattr(held, "grad", s.grad.to_local())
        )
    return whole


class Net(nn.Module):
    def forward(self, x):
        return x


def run(hooked):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net = Net()
        x = torch.ones((), requires_grad=True)
        if hooked:
            net.register_full_backward_hook(lambda *args: None)
        sharded(net)(x).backward()
    return [str(w.message) for w in caught]


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if not experiment or set(experiment) <= set(control) else 1)
