# /// script
# dependencies = ["torch"]
# ///
"""distribute_module drops the hooks of the parameters that it replaces."""
# https://docs.pytorch.org/docs/stable/distributed.tensor.html

import torch
import torch.distributed as dist
from torch import nn

try:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, distribute_module
except ImportError:
    raise SystemExit(3) from None


def give(module, inputs, mesh):
    return tuple(DTensor.from_local(x, mesh, [Replicate()]) for x in inputs)


def take(module, output, mesh):
    return output.to_local()


def calls(mesh, before):
    log = []
    net = nn.Linear(1, 1, bias=False)
    for step in ("register", "distribute") if before else ("distribute", "register"):
        if step == "register":
            net.weight.register_hook(lambda grad: log.append("hook"))
            net.weight.register_post_accumulate_grad_hook(lambda w: log.append("accumulated"))
        else:
            distribute_module(net, mesh, None, give, take)
    net(torch.ones(1, 1)).sum().backward()
    return log


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
mesh = init_device_mesh("cpu", (1,))
control, experiment = calls(mesh, before=False), calls(mesh, before=True)
dist.destroy_process_group()
print("control, registered after:    ", control)
print("experiment, registered before:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ["hook", "accumulated"] else 0 if experiment == control else 1)
