# torch 1.8.0: hookcheck repro b17436a72eb33dd9 --clause AG-01 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_full_backward_hook on MultiheadAttention: x0.grad is wrong."""

import torch
from torch import nn

if not hasattr(torch.nn.modules.module, "register_module_full_backward_hook"):
    raise SystemExit(3)


def run(hooked):
    net = nn.MultiheadAttention(2, 2, add_bias_kv=True)
    with torch.no_grad():
        net.in_proj_weight.copy_(torch.arange(1.0, 13).reshape(6, 2))
        net.in_proj_bias.copy_(torch.arange(1.0, 7))
        net.bias_k.copy_(torch.tensor([[[1.0, 2.0]]]))
        net.bias_v.copy_(torch.tensor([[[1.0, 2.0]]]))
        net.out_proj.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        net.out_proj.bias.copy_(torch.tensor([1.0, 2.0]))
    x0 = torch.arange(1.0, 9).reshape(2, 2, 2).requires_grad_()
    v_y1 = torch.arange(1.0, 13).reshape(2, 2, 3)
    if hooked:

        def act(link, factors, module, grad_input, grad_output):
            return tuple(
                None if g is None else factor * g for factor, g in zip(factors, grad_input)
            )

        torch.nn.modules.module.register_module_full_backward_hook(
            lambda *args: act(0, (2.0, 0.5, 4.0), *args)
        )
        for module in net.modules():
            module.register_full_backward_hook(lambda *args: act(1, (4.0, 4.0, 4.0), *args))
            module.register_full_backward_hook(
                lambda *args: act(2, (0.03125, 0.03125, 0.03125), *args)
            )
    y = net(x0, x0, x0)
    torch.autograd.backward([y[0], y[1]], [torch.arange(1.0, 9).reshape(2, 2, 2), v_y1])
    return x0.grad[1, 1, 1].item()


expected, expected_of_control = 638.0, 1276.0  # chain rule: MultiheadAttention
control, experiment = run(hooked=False), run(hooked=True)
print("control:", control, "experiment:", experiment)
if not abs(control - expected_of_control) <= 6e-01:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 3e-01 else 1)
