# /// script
# dependencies = ["torch"]
# ///
"""Compiled code that removes a hook on what it computed ends in an AssertionError."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html

import torch

if not hasattr(torch, "compile") or not hasattr(torch, "compiler"):
    raise SystemExit(3)


def on_input(x):
    handle = x.register_hook(lambda grad: 10 * grad)
    handle.remove()
    return 2 * x


def on_result(x):
    y = 2 * x
    handle = y.register_hook(lambda grad: 10 * grad)
    handle.remove()
    return y


def outcome(function):
    x = torch.tensor(1.0, requires_grad=True)
    try:
        function(x).backward()
    except AssertionError as error:
        return f"AssertionError: {str(error).splitlines()[0] if str(error) else ''}"
    return x.grad.item()


eager = outcome(on_result)
control = outcome(torch.compile(on_input, backend="eager"))
experiment = outcome(torch.compile(on_result, backend="eager"))
print("eager:                         ", eager)
print("compiled, hook on the input:   ", control)
print("compiled, hook on the result:  ", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if (eager, control) != (2, 2) else 0 if experiment == eager else 1)
