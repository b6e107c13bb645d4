# torch 1.12.1: hookcheck repro SI-04
# /// script
# dependencies = ["torch"]
# ///
"""saved_tensors_hooks, where a hook raises: RuntimeError: Stop."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 10):
    raise SystemExit(3)


def run(experiment):
    calls = []
    net = nn.Linear(1, 1)
    x = torch.ones(1, 1, requires_grad=True)

    def a(value):
        if "a" not in calls:
            calls.append("a")
        if experiment:
            raise ValueError
        return value

    with torch.autograd.graph.saved_tensors_hooks(lambda value: value, a):
        y = net(x)
        try:
            y.backward()
        except Exception as error:
            calls.append(repr(error))
    return calls


expected = ["a", "ValueError()"]  # what is raised comes out of what calls it
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ["a"] else 0 if experiment == expected else 1)
