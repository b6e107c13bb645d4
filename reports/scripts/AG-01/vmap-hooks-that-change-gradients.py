# torch 2.15.0: hookcheck repro 63a55a9ca7c2fd48 --clause AG-01 --kind acting_full_backward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_module_full_backward_pre_hook on Embedding under vmap: net.weight.grad is wrong."""

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 5):
    raise SystemExit(3)


def on_a_batch_of_one(function, arg):
    y = torch.vmap(function, randomness="same")(arg[None])
    return y[0]


def run(hooked):
    net = nn.Embedding(1, 1)
    nn.init.constant_(net.weight, 1.0)
    if hooked:

        def act(link, factors, module, grad_output):
            return tuple(
                None if g is None else factor * g for factor, g in zip(factors, grad_output)
            )

        torch.nn.modules.module.register_module_full_backward_pre_hook(
            lambda *args: act(0, (2.0,), *args)
        )
        for module in net.modules():
            module.register_full_backward_pre_hook(lambda *args: act(2, (0.03125,), *args))
            module.register_full_backward_pre_hook(
                lambda *args: act(1, (4.0,), *args), prepend=True
            )
    on_a_batch_of_one(net, torch.tensor(0)).backward()
    return net.weight.grad[0, 0].item()


expected, expected_of_control = 0.25, 1.0  # chain rule: Embedding
control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
if not abs(control - expected_of_control) <= 5e-04:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
