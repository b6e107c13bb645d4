# torch 2.15.0: hookcheck repro 63a55a9ca7c2fd48 --clause TN-07 --kind output_retain_grad
# /// script
# dependencies = ["torch"]
# ///
"""retain_grad on Embedding under vmap: a gradient is retained never, not once."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.retain_grad.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 5):
    raise SystemExit(3)


def run(experiment):
    calls = []
    net = nn.Embedding(1, 1)

    def watch(module, args, output):
        if output.requires_grad:
            output.retain_grad()
            calls.append(output)

    net.register_forward_hook(watch)
    torch.vmap(net, randomness="same")(torch.tensor(0)[None])[0] if experiment else net(
        torch.tensor(0)
    )
    return len(calls)


expected = 1  # forward once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
