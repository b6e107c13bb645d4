# torch 2.15.0: hookcheck repro ac5795f8279bbc75 --clause P2-11 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on Linear under vmap: the hook is called never, not once."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 5):
    raise SystemExit(3)


def on_a_batch_of_one(function, *args):
    y = torch.vmap(function, randomness="same")(*(arg[None] for arg in args))
    return tuple(each[0] for each in y) if isinstance(y, tuple) else y[0]


def run(experiment):
    calls = []
    net = nn.Linear(1, 1, bias=False)
    x = torch.ones(1)
    net.register_backward_hook(lambda *args: calls.append(1))
    if experiment:
        on_a_batch_of_one(net, x).backward()
    else:
        net(x).backward()
    return len(calls)


expected = 1  # forward once, backward once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
