# torch 2.15.0: hookcheck repro ab3d55917ab8fc53 --clause BW-02 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on LSTM: the hook is called never, not once."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 8):
    raise SystemExit(3)


def run(experiment):
    calls = []
    net = nn.LSTM(1, 2, bias=False, proj_size=1)
    x0 = torch.ones(1, 1, 1, requires_grad=True)
    net.register_backward_hook(lambda *args: calls.append(1))
    (net(x0)[1] if experiment else net(x0))[0].backward()
    return len(calls)


expected = 1  # forward once, backward once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
