# torch 2.13.0: hookcheck repro 2b6dd1bf5553273f --clause GI-01 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_full_backward_hook on a module of Linear under vmap: grad_input[0] is wrong."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 5):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        function = self.part
        return torch.vmap(function, randomness="same")(x[None])[0]


calls = []
net = Net()
nn.init.constant_(net.part.weight, 1.0)
x = torch.tensor([1.0], requires_grad=True)


def act(link, factors, module, grad_input, grad_output):
    if link == 0 and module is net:
        calls.append(grad_input)
    return tuple(None if g is None else factor * g for factor, g in zip(factors, grad_input))


torch.nn.modules.module.register_module_full_backward_hook(lambda *args: act(0, (2.0,), *args))
for module in net.modules():
    module.register_full_backward_hook(lambda *args: act(2, (0.03125,), *args))
    module.register_full_backward_hook(lambda *args: act(1, (4.0,), *args), prepend=True)
net(x).backward()

expected = 0.25  # chain rule: Linear dx = v W̄
control, experiment = x.grad[0].item(), calls[0][0][0].item()
print("control:", control, "experiment:", experiment)
if not abs(control - expected) <= 5e-04:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
