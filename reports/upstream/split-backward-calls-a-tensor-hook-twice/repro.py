# /// script
# dependencies = ["torch"]
# ///
"""Zero-bubble schedules call a tensor hook in a stage twice; the weight's gradient is wrong."""
# https://docs.pytorch.org/docs/stable/distributed.pipelining.html

import torch
import torch.distributed as dist
from torch import nn

try:
    from torch.distributed.pipelining import PipelineStage, schedules
except ImportError:
    raise SystemExit(3) from None


def loss(output, target):
    return output.sum()


def run(schedule):
    log = []

    def hook(grad):
        log.append(grad.item())
        return 10 * grad

    layers = [nn.Linear(1, 1, bias=False) for _ in range(2)]
    for layer in layers:
        nn.init.ones_(layer.weight)
    layers[1].register_forward_hook(lambda module, args, y: y.register_hook(hook) and None)
    shape = torch.ones(1, 1, requires_grad=True)
    stages = [
        PipelineStage(layer, i, 2, torch.device("cpu"), input_args=shape, output_args=shape)
        for i, layer in enumerate(layers)
    ]
    schedule(stages, 1, loss_fn=loss).step(torch.ones(1, 1), target=torch.ones(1, 1))
    return {"hook gets": log, "gradients of the weights": [x.weight.grad.item() for x in layers]}


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
control = run(schedules.ScheduleInterleaved1F1B)
experiment = run(schedules.ScheduleInterleavedZeroBubble)
dist.destroy_process_group()
print("control, Interleaved1F1B:        ", control)
print("experiment, InterleavedZeroBubble:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control["hook gets"] != [1.0] else 0 if experiment == control else 1)
