# torch 2.11.0: hookcheck repro f235d36f727c4e44 --clause FN-04 --kind acting_forward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_forward_hook under torch.compile: output is a tuple, not a Tensor."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
    raise SystemExit(3)


class Net(nn.Module):
    def forward(self, x):
        return torch.nested.as_nested_tensor([*x])


def scaled(value, factor):
    floating = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
    return factor * value if floating else value


def run(experiment):
    calls = []
    net = Net()
    x = torch.ones(1, 1, requires_grad=True)

    def act(link, factor, module, args, output):
        if link == 0:
            calls.append(output)
        return (
            tuple(scaled(o, factor) for o in output)
            if isinstance(output, tuple) and not hasattr(output, "_fields")
            else scaled(output, factor)
        )

    handle = torch.nn.modules.module.register_module_forward_hook(
        torch.compiler.disable(lambda *args: act(0, 0.5, *args))
    )
    for module in net.modules():
        module.register_forward_hook(torch.compiler.disable(lambda *args: act(2, 0.125, *args)))
        module.register_forward_hook(
            torch.compiler.disable(lambda *args: act(1, 4.0, *args)), prepend=True
        )
    (torch.compile(lambda *args: net(*args), backend="aot_eager") if experiment else net)(x)
    handle.remove()
    return type(calls[0]).__name__


expected = "Tensor"  # as forward returned it
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
