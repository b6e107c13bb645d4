# torch 1.8.0: hookcheck repro 4be1e4beb7969d49 --clause GI-01 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_full_backward_hook on a module: grad_input[0] is wrong."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(torch.nn.modules.module, "register_module_full_backward_hook"):
    raise SystemExit(3)


class M1(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Bilinear(1, 1, 1)

    def forward(self, x, a0):
        leaked["h1"] = h0 = self.m0(x, a0)
        return h0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m1 = M1()

    def forward(self, x, a0):
        return self.m1(x, a0)


calls, leaked = [], {}
net = Net()
nn.init.constant_(net.m1.m0.weight, 1.0)
nn.init.constant_(net.m1.m0.bias, 1.0)
x = torch.tensor([[[1.0]]], requires_grad=True)


def act(link, factors, module, grad_input, grad_output):
    if link == 0 and module is net:
        calls.append(grad_input)
    return tuple(None if g is None else factor * g for factor, g in zip(factors, grad_input))


torch.nn.modules.module.register_module_full_backward_hook(lambda *args: act(0, (2.0, 0.5), *args))
for module in net.modules():
    module.register_full_backward_hook(lambda *args: act(1, (4.0, 4.0), *args))
    module.register_full_backward_hook(lambda *args: act(2, (0.03125, 0.03125), *args))
net(x, torch.tensor([[[1.0]]])).backward(retain_graph=True)
leaked["h1"].backward()

expected, expected_of_control = 0.25, 0.0625  # chain rule: Bilinear
control, experiment = calls[0][0][0, 0, 0].item(), calls[1][0][0, 0, 0].item()
print("control:", control, "experiment:", experiment)
if not abs(control - expected_of_control) <= 5e-04:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
