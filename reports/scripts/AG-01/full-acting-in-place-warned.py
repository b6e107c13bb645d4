# torch 1.8.0: hookcheck repro a2834d983e3a8b2d --clause AG-01 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_full_backward_hook on a module of ELU and sum: x.grad is wrong."""

import torch
from torch import nn

if not hasattr(torch.nn.modules.module, "register_module_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.ELU(inplace=True)

    def forward(self, x):
        return self.m0(x.sum())


def run(hooked):
    net = Net()
    x = torch.tensor(1.0, requires_grad=True)
    if hooked:

        def act(link, factors, module, grad_input, grad_output):
            return tuple(
                None if g is None else factor * g for factor, g in zip(factors, grad_input)
            )

        torch.nn.modules.module.register_module_full_backward_hook(
            lambda *args: act(0, (2.0,), *args)
        )
        for module in net.modules():
            module.register_full_backward_hook(lambda *args: act(1, (4.0,), *args))
            module.register_full_backward_hook(lambda *args: act(2, (0.03125,), *args))
    net(x).backward()
    return x.grad.item()


expected, expected_of_control = 0.0625, 1.0  # chain rule: ELU, then Sum
control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
if not abs(control - expected_of_control) <= 5e-04:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
