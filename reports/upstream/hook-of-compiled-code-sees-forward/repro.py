# /// script
# dependencies = ["torch"]
# ///
"""A hook that compiled code registers runs with the state of forward, not that of backward."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html

import torch

if not hasattr(torch, "compile") or not hasattr(torch, "compiler"):
    raise SystemExit(3)


def gradient(wrap, own_value):
    state = {"factor": 10.0}

    def function(x):
        y = 2 * x
        factor = state["factor"]
        if own_value:
            y.register_hook(lambda grad: factor * grad)
        else:
            y.register_hook(lambda grad: state["factor"] * grad)
        return y

    x = torch.tensor(1.0, requires_grad=True)
    y = wrap(function)(x)
    state["factor"] = 100.0
    y.backward()
    return x.grad.item()


def compiled(function):
    return torch.compile(function, backend="eager")


eager, control, experiment = (
    gradient(wrap, own_value)
    for wrap, own_value in ((lambda f: f, False), (compiled, True), (compiled, False))
)
print("eager, state that changed before backward:   ", eager)
print("compiled, a value that forward read:         ", control)
print("compiled, state that changed before backward:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if (eager, control) != (200, 20) else 0 if experiment == eager else 1)
