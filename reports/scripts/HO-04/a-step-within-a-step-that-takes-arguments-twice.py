# torch 2.13.0: hookcheck repro HO-04
# /// script
# dependencies = ["torch"]
# ///
"""with super().step(): A step pre-hook may return the step's new arguments as a pair
``(new_args, new_kwargs)``, or None."""

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 0):
    raise SystemExit(3)


def check(name, observed, expected):
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(1 if name == "step works" else 2)


def failure(act):
    try:
        act()
    except Exception as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0]


for hooked in (False, True):
    parameter = nn.Parameter(torch.tensor([1.0]))
    parameter.grad = torch.tensor([2.0])
    first_steps_optimizer = torch.optim.SGD([parameter], lr=0.25)

    class Calling(type(first_steps_optimizer)):
        def step(self, closure=None):
            return super().step(closure)

    optimizer = Calling(first_steps_optimizer.param_groups, **first_steps_optimizer.defaults)

    def closure():
        return torch.tensor(7.0)

    if hooked:
        optimizer.register_step_pre_hook(
            lambda optimizer, args, kwargs: (args, {"closure": closure})
        )
    if hooked:
        optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: None)
    check("step works" if hooked else "without hooks", failure(lambda: optimizer.step()), None)
