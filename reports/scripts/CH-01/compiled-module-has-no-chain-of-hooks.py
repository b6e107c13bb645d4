# torch 2.15.0: hookcheck repro 8a99624ae6e3ea4d --clause CH-01 --kind acting_forward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_module_forward_pre_hook on Tanh under torch.compile: a call of the first hook is
not followed by those of the others."""

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def scaled(value, factor):
    floating = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
    return factor * value if floating else value


def run(experiment):
    calls = []
    net = nn.Tanh()
    x = torch.ones((), requires_grad=True)

    def act(link, factor, module, args):
        calls.append(link)
        return (*(scaled(value, factor) for value in args[:1]), *args[1:])

    handle = torch.nn.modules.module.register_module_forward_pre_hook(
        torch.compiler.disable(lambda *args: act(0, 0.5, *args))
    )
    for module in net.modules():
        module.register_forward_pre_hook(torch.compiler.disable(lambda *args: act(2, 0.125, *args)))
        module.register_forward_pre_hook(
            torch.compiler.disable(lambda *args: act(1, 4.0, *args)), prepend=True
        )
    (torch.compile(net, backend="eager") if experiment else net)(x)
    handle.remove()
    return calls


control, experiment = run(experiment=False), run(experiment=True)
# of one call of a module the first hook, then the second, then the third
print("control:", control, "experiment:", experiment)
if control != [0, 1, 2] * (len(control) // 3):
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if experiment == [0, 1, 2] * (len(experiment) // 3) else 1)
