# torch 2.15.0: hookcheck repro 8a99624ae6e3ea4d --clause GO-01 --kind acting_full_backward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_module_full_backward_pre_hook on Tanh under torch.compile: grad_output[0] is wrong."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m0 = nn.Tanh()

    def forward(self, x):
        return self.m0(x)


def run(experiment):
    calls = []
    net = Net()
    x = torch.tensor(1.0, requires_grad=True)

    def act(link, factors, module, grad_output):
        if link == 0 and module is net.m0:
            calls.append(grad_output)
        return tuple(None if g is None else factor * g for factor, g in zip(factors, grad_output))

    handle = torch.nn.modules.module.register_module_full_backward_pre_hook(
        torch.compiler.disable(lambda *args: act(0, (2.0,), *args))
    )
    for module in net.modules():
        module.register_full_backward_pre_hook(
            torch.compiler.disable(lambda *args: act(2, (0.03125,), *args))
        )
        module.register_full_backward_pre_hook(
            torch.compiler.disable(lambda *args: act(1, (4.0,), *args)), prepend=True
        )
    (torch.compile(net, backend="eager") if experiment else net)(x).backward()
    handle.remove()
    return calls[0][0].item()


expected = 0.25  # chain rule: Tanh
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
if not abs(control - expected) <= 5e-04:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
