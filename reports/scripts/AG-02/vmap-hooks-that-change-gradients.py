# torch 2.15.0: hookcheck repro ac5795f8279bbc75 --clause AG-02 --kind acting_full_backward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_module_full_backward_pre_hook on Linear under vmap: g[0] is wrong."""

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 5):
    raise SystemExit(3)


def on_a_batch_of_one(function, arg):
    y = torch.vmap(function, randomness="same")(arg[None])
    return y[0]


def run(experiment):
    net = nn.Linear(1, 1, bias=False)
    nn.init.constant_(net.weight, 1.0)
    x = torch.tensor([1.0])

    def act(link, factors, module, grad_output):
        return tuple(None if g is None else factor * g for factor, g in zip(factors, grad_output))

    handle = torch.nn.modules.module.register_module_full_backward_pre_hook(
        lambda *args: act(0, (2.0,), *args)
    )
    for module in net.modules():
        module.register_full_backward_pre_hook(lambda *args: act(2, (0.03125,), *args))
        module.register_full_backward_pre_hook(lambda *args: act(1, (4.0,), *args), prepend=True)
    if experiment:
        g = torch.autograd.grad(on_a_batch_of_one(net, x), net.weight, allow_unused=True)
    else:
        g = torch.autograd.grad(net(x), net.weight, allow_unused=True)
    handle.remove()
    return g[0][0, 0].item()


expected = 0.25  # chain rule: Linear dx = v W̄
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
if not abs(control - expected) <= 5e-04:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
