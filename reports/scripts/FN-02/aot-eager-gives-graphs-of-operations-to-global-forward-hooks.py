# torch 2.15.0: hookcheck repro f235d36f727c4e44 --clause FN-02 --kind global_forward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_forward_hook on a module of astensor: it is given another module."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
    raise SystemExit(3)


def compiled(module, backend):
    def call(*args):
        return module(*args)

    return torch.compile(call, backend=backend)


class Net(nn.Module):
    def forward(self, x):
        return torch.nested.as_nested_tensor([*x])


def run(experiment):
    calls = []
    net = Net()
    x = torch.ones(1, 1, requires_grad=True)
    torch.nn.modules.module.register_module_forward_hook(
        torch.compiler.disable(lambda module, args, output: calls.append(module is net))
    )
    if experiment:
        compiled(net, "aot_eager")(x)
    else:
        net(x)
    return all(calls)


control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
assert control, "the control fails"
raise SystemExit(0 if experiment else 1)
