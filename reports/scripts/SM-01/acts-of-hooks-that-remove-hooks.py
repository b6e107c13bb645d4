# torch 1.9.1: hookcheck repro SM-01
# /// script
# dependencies = ["torch"]
# ///
"""register_forward_pre_hook, a hook that removes a hook: a call raises RuntimeError:
OrderedDict mutated during iteration."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 8):
    raise SystemExit(3)


def run(experiment):
    calls = []
    try:
        net = nn.Linear(1, 1)

        def first(*args):
            calls.append("first")
            handle.remove()

        handle = net.register_forward_pre_hook(first)
        if experiment:
            net.register_forward_pre_hook(lambda *args: calls.append("second"))
        net(torch.ones(1, 1))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return calls


# A call runs the hooks that there are as it begins: on all modules, on its own; prepended first.
expected = ["first", "second"]
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ["first"] else 0 if experiment == expected else 1)
