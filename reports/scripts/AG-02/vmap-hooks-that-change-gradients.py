# torch 2.15.0: hookcheck repro ac5795f8279bbc75 --clause AG-02 --kind acting_full_backward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_module_full_backward_pre_hook on Linear under vmap: g[0] is wrong."""

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 5):
    raise SystemExit(3)


def on_a_batch_of_one(function, *args):
    y = torch.vmap(function, randomness="same")(*(arg[None] for arg in args))
    return tuple(each[0] for each in y) if isinstance(y, tuple) else y[0]


def scaled(value, factor):
    floating = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
    return factor * value if floating else value


def run(experiment):
    net = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[1.0]]))
    x = torch.tensor([1.0])

    def acting(link, factors):
        def hook(module, grad_output):
            return tuple(scaled(g, factors[i % len(factors)]) for i, g in enumerate(grad_output))

        return hook

    torch.nn.modules.module.register_module_full_backward_pre_hook(acting(0, (2.0, 0.5, 4.0)))
    for module in net.modules():
        module.register_full_backward_pre_hook(acting(2, (0.03125,)))
        module.register_full_backward_pre_hook(acting(1, (4.0,)), prepend=True)
    if experiment:
        g = torch.autograd.grad(on_a_batch_of_one(net, x), net.weight, allow_unused=True)
    else:
        g = torch.autograd.grad(net(x), net.weight, allow_unused=True)
    return g[0][0, 0].item()


expected = 0.25  # chain rule: Linear dx = v W̄
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
if not abs(control - expected) <= 5e-04:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
