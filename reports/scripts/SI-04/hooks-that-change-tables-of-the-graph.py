# torch 1.9.1: hookcheck repro SI-04
# /// script
# dependencies = ["torch"]
# ///
"""register_hook, where a hook removes another: a hook is not called."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 8):
    raise SystemExit(3)


def run(experiment):
    calls = []
    net = nn.Linear(1, 1)
    x = torch.ones(1, 1, requires_grad=True)

    def a(*_):
        calls.append("a")
        if experiment:
            handle.remove()

    node = net.weight.view_as(net.weight).grad_fn.next_functions[0][0]
    node.register_hook(a)
    node = net.weight.view_as(net.weight).grad_fn.next_functions[0][0]
    handle = node.register_hook(lambda *_: calls.append("b"))
    net(x).backward()
    return calls


expected = ["a", "b"]  # each hook is called once, in the order of registration
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
