# torch 2.15.0: hookcheck repro 564ff923b1e78aa1 --clause FN-02 --kind acting_forward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_forward_hook on Linear: it is given another module."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def compiled(module, backend):
    def call(*args):
        return module(*args)

    return torch.compile(call, backend=backend)


def scaled(value, factor):
    floating = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
    return factor * value if floating else value


def run(experiment):
    calls = []
    net = nn.Linear(1, 1, bias=False)
    x = torch.ones(1)

    def acting(link, factor):
        def hook(module, args, output):
            if link == 0:
                calls.append(module is net)
            return (
                tuple(scaled(o, factor) for o in output)
                if isinstance(output, tuple) and not hasattr(output, "_fields")
                else scaled(output, factor)
            )

        return hook

    torch.nn.modules.module.register_module_forward_hook(torch.compiler.disable(acting(0, 0.5)))
    for module in net.modules():
        module.register_forward_hook(torch.compiler.disable(acting(2, 0.125)))
        module.register_forward_hook(torch.compiler.disable(acting(1, 4.0)), prepend=True)
    if experiment:
        compiled(net, "aot_eager")(x)
    else:
        net(x)
    return all(calls)


control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
assert control, "the control fails"
raise SystemExit(0 if experiment else 1)
