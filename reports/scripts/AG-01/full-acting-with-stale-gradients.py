# torch 1.12.1: hookcheck repro 626c7c68854e655e --clause AG-01 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""a module of Linear: x.grad is wrong."""

import torch
from torch import nn

if not hasattr(torch.nn.modules.module, "register_module_full_backward_hook"):
    raise SystemExit(3)

leaked = {}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        h0 = self.m0(x)
        leaked["h0"] = h0
        return h0


def scaled(value, factor):
    floating = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
    return factor * value if floating else value


def run():
    net = Net()
    nn.init.constant_(net.m0.weight, 1.0)
    x = torch.tensor([1.0], requires_grad=True)

    def acting(link, factors):
        def hook(module, grad_input, grad_output):
            return tuple(scaled(g, factors[i % len(factors)]) for i, g in enumerate(grad_input))

        return hook

    torch.nn.modules.module.register_module_full_backward_hook(acting(0, (2.0, 0.5, 4.0)))
    for module in net.modules():
        module.register_full_backward_hook(acting(1, (4.0,)))
        module.register_full_backward_hook(acting(2, (0.03125,)))
    net(x).backward(retain_graph=True)
    leaked["h0"].backward()
    return x.grad[0].item()


expected = 0.3125  # chain rule: Linear dx = v W̄
experiment = run()
print("experiment:", experiment)
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
