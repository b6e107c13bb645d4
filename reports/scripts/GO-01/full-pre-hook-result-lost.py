# torch 2.0.1: hookcheck repro f93d3897450b5617 --clause GO-01 --kind acting_full_backward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_module_full_backward_pre_hook on Linear: grad_output[0] is wrong."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
# no control: with one the script would pass 60 lines

import torch
from torch import nn

if not hasattr(torch.nn.modules.module, "register_module_full_backward_pre_hook"):
    raise SystemExit(3)

calls = []
net = nn.Sequential(nn.Linear(1, 1))
nn.init.constant_(net[0].weight, 1.0)
nn.init.constant_(net[0].bias, 1.0)


def acting(link, factors):
    def hook(module, grad_output):
        if link == 0 and module is net[0]:
            calls.append(grad_output)
        return tuple(None if g is None else factor * g for factor, g in zip(factors, grad_output))

    return hook


torch.nn.modules.module.register_module_full_backward_pre_hook(acting(0, (2.0,)))
for module in net.modules():
    module.register_full_backward_pre_hook(acting(2, (0.03125,)))
    module.register_full_backward_pre_hook(acting(1, (4.0,)), prepend=True)
net(torch.tensor([1.0])).backward()

expected = 0.25  # chain rule: Linear dx = v W̄
experiment = calls[0][0][0].item()
print("experiment:", experiment)
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
