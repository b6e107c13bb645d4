# torch 2.15.0: hookcheck repro 46bab32e635a71a6 --clause CH-01 --kind acting_forward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_forward_hook on Linear: the hook is called twice, not 6 times."""

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def scaled(value, factor):
    floating = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
    return factor * value if floating else value


def run():
    calls = []
    net = nn.Linear(1, 1, bias=False)
    x = torch.ones(1)

    def acting(link, factor):
        def hook(module, args, output):
            calls.append(1)
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
    torch.compile(net, backend="eager")(x)
    return len(calls)


expected = 6  # forward once, backward never
experiment = run()
print("experiment:", experiment)
raise SystemExit(0 if experiment == expected else 1)
