# torch 1.9.1: hookcheck repro SI-01
# /// script
# dependencies = ["torch"]
# ///
"""register_forward_hook, where a hook removes itself: RuntimeError: OrderedDict mutated during
iteration."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

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

    handle = net.register_forward_hook(a)
    net.register_forward_hook(lambda *_: calls.append("b"))
    try:
        net(x)
    except Exception as error:
        calls.append(repr(error))
    return calls


expected = ["a", "b"]  # each hook is called once, in the order of registration
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
