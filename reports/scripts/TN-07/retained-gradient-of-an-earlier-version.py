# torch 1.8.0: hookcheck repro 39d28c7499ab81c6 --clause TN-07 --kind output_retain_grad
# /// script
# dependencies = ["torch"]
# ///
"""retain_grad on Linear: the gradient is wrong."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.retain_grad.html

import torch
from torch import nn


def run(experiment):
    calls = []
    net = nn.Linear(1, 1, bias=False)
    nn.init.constant_(net.weight, 1.0)

    def watch(module, args, output):
        output.retain_grad()
        calls.append(output)

    net.register_forward_hook(watch)
    if experiment:
        y = net(torch.tensor([1.0]))
        y.mul_(2.0)
        y.backward()
    else:
        net(torch.tensor([1.0])).backward()
    return calls[0].grad[0].item()


expected = 1.0  # chain rule: ScaleInplace, then Linear dx = v W̄
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
if not abs(control - expected) <= 5e-04:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
