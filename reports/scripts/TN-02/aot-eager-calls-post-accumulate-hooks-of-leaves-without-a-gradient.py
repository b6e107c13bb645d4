# torch 2.13.0: hookcheck repro 9bfd35cd2307017b --clause TN-02 --kind post_accumulate
# /// script
# dependencies = ["torch"]
# ///
"""register_post_accumulate_grad_hook on a module of Linear under torch.compile under no_grad:
the hook is called once, not never."""

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 7):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1)
        self.m1 = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        with torch.no_grad():
            h0 = self.m0(x)
        return self.m1(h0)


def run(experiment):
    calls = []
    net = Net()
    net.m0.weight.register_post_accumulate_grad_hook(
        torch.compiler.disable(lambda leaf: calls.append(1))
    )
    (torch.compile(lambda *args: net(*args), backend="aot_eager") if experiment else net)(
        torch.ones(1)
    ).backward()
    return len(calls)


expected = 0  # no gradient that the hook waits for is computed
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
