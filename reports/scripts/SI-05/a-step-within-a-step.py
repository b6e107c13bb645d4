# torch 2.15.0: hookcheck repro SI-05
# /// script
# dependencies = ["torch"]
# ///
"""register_optimizer_step_pre_hook of an optimizer with super().step(): a hook is called too
often."""

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 0):
    raise SystemExit(3)


class CallingStep(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)


def run(experiment):
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    calls = []
    net = nn.Linear(1, 1)
    if experiment:
        optimizer = CallingStep(torch.optim.SGD(net.parameters(), lr=0.0).param_groups, lr=0.0)
    else:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
    handle = register_optimizer_step_pre_hook(lambda *_: calls.append("a"))
    optimizer.step()
    handle.remove()
    return calls


expected = ["a"]  # the hook is called once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
