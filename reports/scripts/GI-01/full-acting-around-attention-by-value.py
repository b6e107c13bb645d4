# torch 1.8.0: hookcheck repro fd9e4f3fd3c043b8 --clause GI-01 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_full_backward_hook on a module of MultiheadAttention: grad_input[0] is wrong."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(torch.nn.modules.module, "register_module_full_backward_hook"):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.MultiheadAttention(1, 1)

    def forward(self, x):
        return self.m0(x, x, x)


def run(experiment):
    calls = []
    net = Net()
    with torch.no_grad():
        net.m0.in_proj_weight.copy_(torch.tensor([[1.0], [2.0], [3.0]]))
        net.m0.in_proj_bias.copy_(torch.tensor([1.0, 2.0, 3.0]))
        net.m0.out_proj.weight.copy_(torch.tensor([[1.0]]))
        net.m0.out_proj.bias.copy_(torch.tensor([1.0]))
    x = torch.tensor([[[1.0]]], requires_grad=True)

    def act(link, factors, module, grad_input, grad_output):
        if link == 0 and module is net:
            calls.append(grad_input)
        return tuple(None if g is None else factor * g for factor, g in zip(factors, grad_input))

    handle = torch.nn.modules.module.register_module_full_backward_hook(
        lambda *args: act(0, (2.0, 0.5, 4.0), *args)
    )
    for module in net.modules():
        module.register_full_backward_hook(lambda *args: act(1, (4.0, 4.0, 4.0), *args))
        module.register_full_backward_hook(lambda *args: act(2, (0.03125, 0.03125, 0.03125), *args))
    net(x)[(0 if experiment else 1)].backward()
    handle.remove()
    return calls[0][0][0, 0, 0].item()


expected, expected_of_control = 1.5, 0.0  # chain rule: MultiheadAttention
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
if not abs(control - expected_of_control) <= 5e-04:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 7e-04 else 1)
