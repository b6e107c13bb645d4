# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook with an object that has an attribute `hook`: that attribute is called."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

called = []


class Watcher:
    """A hook that counts its calls; ``hook`` and ``function`` are attributes like any other."""

    def __init__(self, name):
        setattr(self, name, lambda *args: called.append(f"the attribute {name}"))

    def __call__(self, module, grad_input, grad_output):
        called.append("the hook")


def run(name):
    called.clear()
    net = nn.Linear(1, 1)
    net.register_backward_hook(Watcher(name))
    net(torch.ones(1)).backward()
    return list(called)


expected = ["the hook"]
control, experiment = run("function"), run("hook")
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
