# torch 1.8.0: hookcheck repro b61007d171bd6788 --clause AG-01 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_full_backward_hook on a module of Softsign: x.grad is wrong."""

import torch
from torch import nn

if not hasattr(torch.nn.modules.module, "register_module_full_backward_hook"):
    raise SystemExit(3)

leaked = {}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m2 = nn.Softsign()

    def forward(self, x):
        leaked["h0"] = x
        return self.m2(x)


def run(experiment):
    net = Net()
    x = torch.tensor(1.0, requires_grad=True)

    def acting(link, factors):
        def hook(module, grad_input, grad_output):
            return tuple(
                None if g is None else factor * g for factor, g in zip(factors, grad_input)
            )

        return hook

    handle = torch.nn.modules.module.register_module_full_backward_hook(acting(0, (2.0,)))
    for module in net.modules():
        module.register_full_backward_hook(acting(1, (4.0,)))
        module.register_full_backward_hook(acting(2, (0.03125,)))
    net(x).backward()
    if experiment:
        leaked["h0"].backward()
    handle.remove()
    return x.grad.item()


expected = 1.015625  # chain rule: Softsign
expected_of_control = 0.015625  # chain rule: Softsign
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
if not abs(control - expected_of_control) <= 5e-04:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
