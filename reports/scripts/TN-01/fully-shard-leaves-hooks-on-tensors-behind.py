# torch 2.15.0: hookcheck repro a2a7fb325824285a --clause TN-01 --kind tensor
# /// script
# dependencies = ["torch"]
# ///
"""register_hook on Linear: the hook is called never, not once."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
import torch.distributed as dist
from torch import nn

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
    x = torch.ones(1)
    net.weight.register_hook(calls.append)
    if experiment:
        sharded(net)(x).backward()
    else:
        net(x).backward()
    return len(calls)


expected = 1  # forward never, backward once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
assert control == expected, "the control fails"
raise SystemExit(0 if experiment == expected else 1)
