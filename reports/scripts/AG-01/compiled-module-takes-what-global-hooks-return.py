# torch 2.15.0: hookcheck repro 8a99624ae6e3ea4d --clause AG-01 --kind acting_forward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_module_forward_pre_hook on Tanh under torch.compile: x.grad is wrong."""

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def scaled(value, factor):
    floating = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
    return factor * value if floating else value


def run(hooked):
    net = nn.Tanh()
    x = torch.tensor(1.0, requires_grad=True)
    if hooked:

        def act(link, factor, module, args):
            return (*(scaled(value, factor) for value in args[:1]), *args[1:])

        torch.nn.modules.module.register_module_forward_pre_hook(
            torch.compiler.disable(lambda *args: act(0, 0.5, *args))
        )
        for module in net.modules():
            module.register_forward_pre_hook(
                torch.compiler.disable(lambda *args: act(2, 0.125, *args))
            )
            module.register_forward_pre_hook(
                torch.compiler.disable(lambda *args: act(1, 4.0, *args)), prepend=True
            )
    torch.compile(net, backend="eager")(x).backward()
    return x.grad.item()


expected, expected_of_control = 0.23500371, 0.41997434  # chain rule: Tanh, then Scale dx = number ·
control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
if not abs(control - expected_of_control) <= 5e-04:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
