# /// script
# dependencies = ["torch"]
# ///
"""ZeroRedundancyOptimizer.load_state_dict ignores what its hooks change."""

import torch
import torch.distributed as dist
from torch import nn, optim

try:
    from torch.distributed.optim import ZeroRedundancyOptimizer
except ImportError:
    raise SystemExit(3) from None


def learning_rate(sharded):
    weight = nn.Parameter(torch.ones(1))
    if not sharded:
        optimizer = optim.SGD([weight], lr=1.0)
    else:
        optimizer = ZeroRedundancyOptimizer([weight], optimizer_class=optim.SGD, lr=1.0)
        optimizer.consolidate_state_dict()
    if not hasattr(optimizer, "register_load_state_dict_pre_hook"):
        raise SystemExit(3)

    def halved(optimizer, state_dict):
        group = {**state_dict["param_groups"][0], "lr": 0.5}
        return {**state_dict, "param_groups": [group]}

    optimizer.register_load_state_dict_pre_hook(halved)
    optimizer.load_state_dict(optimizer.state_dict())
    return optimizer.param_groups[0]["lr"]


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
control, experiment = learning_rate(sharded=False), learning_rate(sharded=True)
dist.destroy_process_group()
print("control:   ", control)
print("experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != 0.5 else 0 if experiment == 0.5 else 1)
