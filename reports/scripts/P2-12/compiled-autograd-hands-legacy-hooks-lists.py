# torch 2.15.0: hookcheck repro 6c8808329ddae660 --clause P2-12 --kind backward
# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on Linear: grad_output is a list, not a Tensor."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
    raise SystemExit(3)


def compiled_autograd():
    from torch._dynamo import compiled_autograd

    return compiled_autograd._enable(lambda graph: graph.forward)


def run():
    calls = []
    net = nn.Linear(1, 1, bias=False)
    x = torch.ones(1)
    net.register_backward_hook(
        torch.compiler.disable(lambda module, grad_input, grad_output: calls.append(grad_output))
    )
    with compiled_autograd():
        y = net(x)
        y.backward()
    return type(calls[0]).__name__


expected = "Tensor"  # its gradient is computed
experiment = run()
print("experiment:", experiment)
raise SystemExit(0 if experiment == expected else 1)
