# torch 2.15.0: hookcheck repro HO-04
# /// script
# dependencies = ["torch"]
# ///
"""with super().step(): Step hooks are not called where a GradScaler skips the step since a
gradient is infinite."""

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 3):
    raise SystemExit(3)


def check(name, observed, expected):
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(2 if name == "without Calling" else 1)


for experiment in (False, True):
    parameter = nn.Parameter(torch.tensor([1.0]))
    parameter.grad = torch.tensor([2.0])
    first_steps_optimizer = torch.optim.SGD([parameter], lr=0.25)

    class Calling(type(first_steps_optimizer)):
        def step(self, closure=None):
            return super().step(closure)

    if experiment:
        optimizer = Calling(first_steps_optimizer.param_groups, **first_steps_optimizer.defaults)
    else:
        optimizer = first_steps_optimizer
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    log = []
    optimizer.register_step_pre_hook(lambda *arguments: log.append("pre"))
    optimizer.register_step_post_hook(lambda *arguments: log.append("post"))
    parameter.grad = None
    scaler.scale((2.0 * parameter).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    name = "hooks under a gradient of 2.0" if experiment else "without Calling"
    check(name, list(log), ["pre", "post"])
