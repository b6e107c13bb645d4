# torch 2.15.0: hookcheck repro 8a99624ae6e3ea4d --clause FN-01 --kind acting_forward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_module_forward_pre_hook under torch.compile: the hook is called twice, not once."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def run(experiment):
    calls = []
    net = nn.Tanh()
    x = torch.ones((), requires_grad=True)
    torch.nn.modules.module.register_module_forward_pre_hook(
        torch.compiler.disable(lambda *args: calls.append(1))
    )
    (torch.compile(net, backend="eager") if experiment else net)(x)
    return len(calls)


expected = 1  # forward once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
