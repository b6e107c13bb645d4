# torch 2.15.0: hookcheck repro 0ff0f53981753104 --clause BW-03 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on RNN: the hook is called never, not once."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 11):
    raise SystemExit(3)


def run(register):
    calls = []
    net = nn.RNN(2, 1, num_layers=2, bias=False, bidirectional=True)
    x0 = torch.ones(1, 2)
    v_y0 = torch.ones(4, 1)
    getattr(net, register)(lambda *args: calls.append(1))
    net(x0)[1].backward(v_y0)
    return len(calls)


expected = 1  # forward once, backward once
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
