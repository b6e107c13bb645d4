# torch 2.15.0: hookcheck repro cedf060948c36b70 --clause TN-06 --kind multi_grad
# /// script
# dependencies = ["torch"]
# ///
"""register_multi_grad_hook on Linear: the hook is called twice, not once."""
# https://docs.pytorch.org/docs/stable/autograd.html

import torch
from torch import nn

if not hasattr(getattr(torch.autograd, "graph", None), "register_multi_grad_hook"):
    raise SystemExit(3)


class Handling(torch.Tensor):
    """A tensor that has its own say in what the functions of torch do."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})


def run(experiment):
    calls = []
    net = nn.Linear(1, 1, bias=False)
    if experiment:
        x = torch.ones(1).as_subclass(Handling).requires_grad_()
    else:
        x = torch.ones(1, requires_grad=True)
    torch.autograd.graph.register_multi_grad_hook([net.weight, x], calls.append)
    net(x).backward()
    return len(calls)


expected = 1  # forward once, backward once
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
