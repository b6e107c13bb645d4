# torch 2.11.0: hookcheck repro f235d36f727c4e44 --clause FN-02 --kind acting_forward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_forward_hook under torch.compile: it is given another module."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
    raise SystemExit(3)


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
    for module in net.modules():
        module.register_forward_hook(torch.compiler.disable(lambda *args: None))
    (torch.compile(lambda *args: net(*args), backend="aot_eager") if experiment else net)(x)
    return all(calls)


control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if not control else 0 if experiment else 1)
