# torch 1.8.0: hookcheck repro 4be1e4beb7969d49 --clause GI-01 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_full_backward_hook on a module: grad_input[0] is wrong."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
# no control: with one the script would pass 60 lines

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


def acting(link, factors):
    def hook(module, grad_input, grad_output):
        if link == 0 and module is net:
            calls.append(grad_input)
        return tuple(None if g is None else factor * g for factor, g in zip(factors, grad_input))

    return hook


torch.nn.modules.module.register_module_full_backward_hook(acting(0, (2.0, 0.5)))
for module in net.modules():
    module.register_full_backward_hook(acting(1, (4.0, 4.0)))
    module.register_full_backward_hook(acting(2, (0.03125, 0.03125)))
net(x, torch.tensor([[[1.0]]])).backward(retain_graph=True)
leaked["h1"].backward()

expected = 0.25  # chain rule: Bilinear
experiment = calls[1][0][0, 0, 0].item()
print("experiment:", experiment)
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
