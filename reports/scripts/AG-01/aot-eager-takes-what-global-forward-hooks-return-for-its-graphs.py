# torch 2.15.0: hookcheck repro 93ab7ae94778e8f9 --clause AG-01 --kind acting_forward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_forward_hook on EmbeddingBag under torch.compile: net.weight.grad is wrong."""

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def scaled(value, factor):
    floating = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
    return factor * value if floating else value


def run(hooked):
    net = nn.EmbeddingBag(1, 1)
    nn.init.constant_(net.weight, 1.0)
    if hooked:

        def act(link, factor, module, args, output):
            return (
                tuple(scaled(o, factor) for o in output)
                if isinstance(output, tuple) and not hasattr(output, "_fields")
                else scaled(output, factor)
            )

        torch.nn.modules.module.register_module_forward_hook(
            torch.compiler.disable(lambda *args: act(0, 0.5, *args))
        )
        for module in net.modules():
            module.register_forward_hook(torch.compiler.disable(lambda *args: act(2, 0.125, *args)))
            module.register_forward_hook(
                torch.compiler.disable(lambda *args: act(1, 4.0, *args)), prepend=True
            )
    torch.compile(net, backend="aot_eager")(torch.tensor([[0]])).backward()
    return net.weight.grad[0, 0].item()


expected, expected_of_control = 0.25, 1.0  # chain rule: Scale dx = number · v, then EmbeddingBag
control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
if not abs(control - expected_of_control) <= 5e-04:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
