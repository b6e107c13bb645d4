# torch 1.8.0: hookcheck repro b61007d171bd6788 --clause GO-02 --kind acting_full_backward
# /// script
# dependencies = ["torch"]
# ///
"""register_module_full_backward_hook: grad_output[0] is a Tensor, not None."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(torch.nn.modules.module, "register_module_full_backward_hook"):
    raise SystemExit(3)

leaked = {}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m2 = nn.Softsign()

    def forward(self, x):
        leaked["h0"] = x
        return self.m2(x)


def run(experiment):
    calls = []
    net = Net()
    x = torch.ones((), requires_grad=True)

    def act(link, factors, module, grad_input, grad_output):
        if link == 0 and module is net:
            calls.append(grad_output)
        return tuple(None if g is None else factor * g for factor, g in zip(factors, grad_input))

    handle = torch.nn.modules.module.register_module_full_backward_hook(
        lambda *args: act(0, (2.0,), *args)
    )
    for module in net.modules():
        module.register_full_backward_hook(lambda *args: act(1, (4.0,), *args))
        module.register_full_backward_hook(lambda *args: act(2, (0.03125,), *args))
    if experiment:
        net(x).backward()
        leaked["h0"].backward()
    else:
        y = net(x)
        y.backward(retain_graph=True)
        y.backward()
    handle.remove()
    return type(calls[1][0]).__name__


expected = "NoneType"  # no gradient is computed there
expected_of_control = "Tensor"  # its gradient is computed
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected_of_control else 0 if experiment == expected else 1)
