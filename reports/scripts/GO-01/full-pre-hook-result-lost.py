# torch 2.0.1: hookcheck repro f93d3897450b5617 --clause GO-01 --kind acting_full_backward_pre
# /// script
# dependencies = ["torch"]
# ///
"""register_module_full_backward_pre_hook on Linear: grad_output[0] is wrong."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(torch.nn.modules.module, "register_module_full_backward_pre_hook"):
    raise SystemExit(3)


def run(experiment):
    calls = []
    net = nn.Sequential(nn.Linear(1, 1))
    nn.init.constant_(net[0].weight, 1.0)
    nn.init.constant_(net[0].bias, 1.0)
    x = torch.tensor([1.0]) if experiment else torch.tensor([1.0], requires_grad=True)

    def act(link, factors, module, grad_output):
        if link == 0 and module is net[0]:
            calls.append(grad_output)
        return tuple(None if g is None else factor * g for factor, g in zip(factors, grad_output))

    handle = torch.nn.modules.module.register_module_full_backward_pre_hook(
        lambda *args: act(0, (2.0,), *args)
    )
    for module in net.modules():
        module.register_full_backward_pre_hook(lambda *args: act(2, (0.03125,), *args))
        module.register_full_backward_pre_hook(lambda *args: act(1, (4.0,), *args), prepend=True)
    net(x).backward()
    handle.remove()
    return calls[0][0][0].item()


expected = 0.25  # chain rule: Linear dx = v W̄
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
if not abs(control - expected) <= 5e-04:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if abs(experiment - expected) <= 5e-04 else 1)
