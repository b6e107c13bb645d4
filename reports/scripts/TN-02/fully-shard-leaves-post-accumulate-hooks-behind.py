# torch 2.15.0: hookcheck repro 6b7689904cdf23a7 --clause TN-02 --kind post_accumulate
# /// script
# dependencies = ["torch"]
# ///
"""register_post_accumulate_grad_hook under fully_shard: the hook is called never, not once."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 7):
    raise SystemExit(3)


def sharded(module):
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    old = dict(module.named_parameters())
    (device,) = {p.device.type for p in old.values()} or {"cpu"}
    whole = fully_shard(module, mesh=init_device_mesh(device, (1,)))
    for name, shard in module.named_parameters():
        shard.register_post_accumulate_grad_hook(
            lambda s, held=old[name]: setattr(held, "grad", s.grad.to_local())
        )
    return whole


def run(experiment):
    calls = []
    net = nn.MultiheadAttention(1, 1)
    net.in_proj_weight.register_post_accumulate_grad_hook(lambda leaf: calls.append(1))
    if experiment:
        sharded(net)(torch.ones(1, 1), torch.ones(1, 1), torch.ones(1, 1))[0].backward()
    else:
        net(torch.ones(1, 1), torch.ones(1, 1), torch.ones(1, 1))[0].backward()
    return len(calls)


expected = 1  # backward once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
