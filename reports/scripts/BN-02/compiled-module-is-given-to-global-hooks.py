# torch 2.15.0: hookcheck repro 8a99624ae6e3ea4d --clause BN-02 --kind acting_full_backward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_module_full_backward_pre_hook under torch.compile: it is given another module."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def run(experiment):
    calls = []
    net = nn.Tanh()
    x = torch.ones((), requires_grad=True)
    torch.nn.modules.module.register_module_full_backward_pre_hook(
        torch.compiler.disable(lambda module, grad_output: calls.append(module is net))
    )
    (torch.compile(net, backend="eager") if experiment else net)(x).backward()
    return all(calls)


control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if not control else 0 if experiment else 1)
