# torch 2.15.0: hookcheck repro 0586535c36a48ee6 --clause OB-07 --kind full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on a module of Linear under compiled autograd under
torch.compile: a hook that returns None changes y."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
    raise SystemExit(3)


class Sub(torch.Tensor):
    """A tensor of a class of its own."""


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        return self.m0(x)


def run(hooked):
    torch.compiler.reset()
    net = Net()
    net.m0.weight = nn.Parameter(net.m0.weight.detach().as_subclass(Sub))
    x = torch.ones(1)
    if hooked:
        net.register_full_backward_hook(torch.compiler.disable(lambda *args: None))
    from torch._dynamo import compiled_autograd

    with compiled_autograd._enable(lambda graph: graph.forward):
        y = torch.compile(lambda *args: net(*args), backend="eager")(x)
    return type(y).__name__


control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
raise SystemExit(0 if experiment == control else 1)
