# torch 2.13.0: hookcheck repro 63a55a9ca7c2fd48 --clause BW-03 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on Embedding under vmap: the hook is called never, not once."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 5):
    raise SystemExit(3)


def run(experiment):
    calls = []
    net = nn.Embedding(1, 1)
    net.register_backward_hook(lambda *args: calls.append(1))
    (
        torch.vmap(net, randomness="same")(torch.tensor(0)[None])[0]
        if experiment
        else net(torch.tensor(0))
    ).backward()
    return len(calls)


expected = 1  # forward once, backward once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
