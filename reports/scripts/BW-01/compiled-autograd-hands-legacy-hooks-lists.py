# torch 2.15.0: hookcheck repro 0586535c36a48ee6 --clause BW-01 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on Linear under compiled autograd: grad_input is a list, not a tuple."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
    raise SystemExit(3)


def run(register):
    calls = []
    net = nn.Linear(1, 1, bias=False)
    x = torch.ones(1)
    getattr(net, register)(
        torch.compiler.disable(lambda _, grad_input, grad_output: calls.append(grad_input))
    )
    from torch._dynamo import compiled_autograd

    with compiled_autograd._enable(lambda graph: graph.forward):
        y = net(x)
        y.backward()
    return type(calls[0]).__name__


expected = "tuple"  # hook(module, grad_input, grad_output)
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
