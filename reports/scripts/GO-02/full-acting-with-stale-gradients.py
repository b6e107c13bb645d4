# torch 1.8.0: hookcheck repro b61007d171bd6788 --clause GO-02 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_full_backward_hook on a module of Softsign: grad_output[0] is a Tensor, …"""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
# no control: with one the script would pass 60 lines

import torch
from torch import nn

if not hasattr(torch.nn.modules.module, "register_module_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m2 = nn.Softsign()

    def forward(self, x):
        leaked["h0"] = x
        return self.m2(x)


calls, leaked = [], {}
net = Net()
x = torch.ones((), requires_grad=True)


def acting(link, factors):
    def hook(module, grad_input, grad_output):
        if link == 0 and module is net:
            calls.append(grad_output)
        return tuple(None if g is None else factor * g for factor, g in zip(factors, grad_input))

    return hook


torch.nn.modules.module.register_module_full_backward_hook(acting(0, (2.0,)))
for module in net.modules():
    module.register_full_backward_hook(acting(1, (4.0,)))
    module.register_full_backward_hook(acting(2, (0.03125,)))
net(x).backward()
leaked["h0"].backward()

expected = "NoneType"  # no gradient is computed there
experiment = type(calls[1][0]).__name__
print("experiment:", experiment)
raise SystemExit(0 if experiment == expected else 1)
