# torch 2.13.0: hookcheck repro 83629c7bbd7b76e2 --clause TN-02 --kind post_accumulate
# /// script
# dependencies = ["torch"]
# ///
"""register_post_accumulate_grad_hook under Module.compile: the hook is called once, not never."""

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 2):
    raise SystemExit(3)

leaked = {}


def compiled_ahead_in_place(module):
    module.compile(backend="aot_eager")
    return module


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1)
        self.m1 = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        leaked["h"] = h0 = self.m0(x)
        return self.m1(h0)


def run(experiment):
    calls = []
    net = Net()
    net.m1.weight.register_post_accumulate_grad_hook(
        torch.compiler.disable(lambda leaf: calls.append(1))
    )
    (compiled_ahead_in_place(net) if experiment else net)(torch.ones(1))
    leaked["h"].backward()
    return len(calls)


expected = 0  # no gradient that the hook waits for is computed
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
