# /// script
# dependencies = ["torch"]
# ///
"""input_reshard leaves its saved tensor hooks open after an exception in forward."""
# https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.saved_tensors_hooks

import torch
import torch.distributed as dist
from torch import nn

try:
    from torch.autograd.graph import saved_tensors_hooks
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel.input_reshard import input_reshard
except ImportError:
    raise SystemExit(3) from None


class Net(nn.Module):
    def forward(self, x, fails):
        if fails:
            raise KeyError("in forward")
        return 2 * x


def packed(mesh, fails):
    log = []
    net = input_reshard(Net(), mesh, 0)
    x = torch.ones(2, requires_grad=True)
    with saved_tensors_hooks(lambda t: (log.append("packed"), t)[1], lambda t: t):
        try:
            net(x, fails)
        except KeyError:
            pass
        x * x  # saves both factors
    return log


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
mesh = init_device_mesh("cpu", (1,))
control, experiment = packed(mesh, fails=False), packed(mesh, fails=True)
dist.destroy_process_group()
print("control, after a forward:         ", control)
print("experiment, after one that raised:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ["packed", "packed"] else 0 if experiment == control else 1)
