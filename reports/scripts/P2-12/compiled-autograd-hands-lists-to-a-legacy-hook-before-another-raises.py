# torch 2.15.0: hookcheck repro 46bab32e635a71a6 --clause P2-12 --kind global_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_backward_hook on Linear: grad_output is a list, not a tuple."""

from contextlib import suppress

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
    raise SystemExit(3)


def compiled_autograd():
    from torch._dynamo import compiled_autograd

    return compiled_autograd._enable(lambda graph: graph.forward)


def run(experiment):
    calls = []
    with suppress(Exception):
        net = nn.Linear(1, 1, bias=False)
        x = torch.ones(1)
        torch.nn.modules.module.register_module_backward_hook(
            torch.compiler.disable(lambda _, grad_input, grad_output: calls.append(grad_output))
        )
        if experiment:
            with compiled_autograd():
                y = torch.compile(net, backend="eager")(x)
                y.backward()
        else:
            torch.compile(net, backend="eager")(x).backward()
    return type(calls[0]).__name__


expected = "tuple"  # hook(module, grad_input, grad_output)
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
