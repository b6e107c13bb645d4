# torch 1.8.0: hookcheck repro b17436a72eb33dd9 --clause GI-01 --kind global_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_full_backward_hook on MultiheadAttention: grad_input[0] is wrong."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)

calls = []
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
x0 = (torch.tensor([[[-93, 43], [45, 23]], [[39, -71], [37, 27]]]) / 32).requires_grad_()
v_y0 = torch.tensor([[[-19, 61], [-63, 83]], [[11, -73], [-43, 63]]]) / 32
v_y1 = torch.tensor([[[-21, -75, -87], [33, -25, 31]], [[61, -59, 17], [41, -7, 53]]]) / 32
net.register_full_backward_hook(lambda _, grad_input, grad_output: calls.append(grad_input))
y = net(x0, x0, x0)
torch.autograd.backward([y[0], y[1]], [v_y0, v_y1])

expected, expected_of_control = 0.48403552, 13.69975  # chain rule: MultiheadAttention
control, experiment = x0.grad[1, 1, 1].item(), calls[0][0][1, 1, 1].item()
print("control:", control, "experiment:", experiment)
if not abs(control - expected_of_control) <= 7e-03:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 1e-03 else 1)
