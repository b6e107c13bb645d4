# torch 2.0.1: hookcheck repro SI-04
# /// script
# dependencies = ["torch"]
# ///
"""register_multi_grad_hook, where a hook registers another: AttributeError: 'NoneType' object
has no attribute …"""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 0):
    raise SystemExit(3)


def run(experiment):
    calls = []
    net = nn.Linear(1, 1)
    x = torch.ones(1, 1, requires_grad=True)

    def a(*_):
        calls.append("a")
        if experiment:
            torch.autograd.graph.register_multi_grad_hook(
                [x, net.weight], lambda *_: calls.append("b")
            )

    torch.autograd.graph.register_multi_grad_hook([x, net.weight], a)
    y = net(x)
    try:
        y.backward()
    except Exception as error:
        calls.append(repr(error))
    return calls


expected = ["a"]  # the hook is called once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
