# torch 2.15.0: hookcheck repro 8a99624ae6e3ea4d --clause AG-02 --kind acting_forward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_module_forward_pre_hook on Tanh under torch.compile: y is wrong."""

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def scaled(value, factor):
    floating = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
    return factor * value if floating else value


def run(experiment):
    net = nn.Tanh()
    x = torch.tensor(1.0, requires_grad=True)

    def act(link, factor, module, args):
        return (*(scaled(value, factor) for value in args[:1]), *args[1:])

    handle = torch.nn.modules.module.register_module_forward_pre_hook(
        torch.compiler.disable(lambda *args: act(0, 0.5, *args))
    )
    for module in net.modules():
        module.register_forward_pre_hook(torch.compiler.disable(lambda *args: act(2, 0.125, *args)))
        module.register_forward_pre_hook(
            torch.compiler.disable(lambda *args: act(1, 4.0, *args)), prepend=True
        )
    y = (torch.compile(net, backend="eager") if experiment else net)(x)
    handle.remove()
    return y.item()


expected = 0.24491866  # chain rule: Tanh, then Scale dx = number · v
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
if not abs(control - expected) <= 5e-04:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
