# torch 1.8.0: hookcheck repro b17436a72eb33dd9 --clause AG-01 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""MultiheadAttention: net.in_proj_weight.grad is wrong."""

import torch
from torch import nn

if not hasattr(torch.nn.modules.module, "register_module_full_backward_hook"):
    raise SystemExit(3)


def scaled(value, factor):
    floating = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
    return factor * value if floating else value


def run():
    net = nn.MultiheadAttention(2, 2, add_bias_kv=True)
    with torch.no_grad():
        net.in_proj_weight.copy_(
            torch.tensor([[7, 25], [77, -43], [-81, -25], [91, 41], [-17, -85], [3, -67]]) / 32
        )
        net.in_proj_bias.copy_(torch.tensor([43, 5, 79, -47, -33, -93]) / 32)
        net.bias_k.copy_(torch.tensor([[[-2.21875, -1.21875]]]))
        net.bias_v.copy_(torch.tensor([[[0.78125, -0.21875]]]))
        net.out_proj.weight.copy_(torch.tensor([[2.09375, 0.71875], [0.03125, -0.71875]]))
        net.out_proj.bias.copy_(torch.tensor([-0.78125, -2.78125]))
    x0 = torch.tensor([[[-93, 43], [45, 23]], [[39, -71], [37, 27]]]) / 32
    x1 = torch.tensor([[0.21875, 0.15625], [1.46875, -0.15625]])
    x2 = torch.tensor([[0.65625, -0.90625], [1.09375, -1.84375]])
    v_y0 = torch.tensor([[[-19, 61], [-63, 83]], [[11, -73], [-43, 63]]]) / 32
    v_y1 = torch.tensor([[[-21, -75, -87], [33, -25, 31]], [[61, -59, 17], [41, -7, 53]]]) / 32

    def acting(link, factors):
        def hook(module, grad_input, grad_output):
            return tuple(scaled(g, factors[i % len(factors)]) for i, g in enumerate(grad_input))

        return hook

    torch.nn.modules.module.register_module_full_backward_hook(acting(0, (2.0, 0.5, 4.0)))
    for module in net.modules():
        module.register_full_backward_hook(acting(1, (4.0,)))
        module.register_full_backward_hook(acting(2, (0.03125,)))
    y = net(x0, x0, x0, attn_mask=x1, key_padding_mask=x2)
    torch.autograd.backward([y[0], y[1]], [v_y0, v_y1])
    return net.in_proj_weight.grad[3, 1].item()


expected = -7.2667745  # chain rule: MultiheadAttention
experiment = run()
print("experiment:", experiment)
raise SystemExit(0 if abs(experiment - expected) <= 7e-03 else 1)
