# /// script
# dependencies = ["torch"]
# ///
"""A step pre-hook's args hold the optimizer too, so that new args without it make step fail."""
# https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.register_step_pre_hook.html

import torch

if not hasattr(torch.optim.Optimizer, "register_step_pre_hook"):
    raise SystemExit(3)


def closure():
    calls.append("closure")


def outcome(hook, *arguments):
    calls.clear()
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    optimizer.register_step_pre_hook(hook)
    try:
        optimizer.step(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return list(calls)


calls, lengths = [], []
outcome(lambda optimizer, args, kwargs: lengths.append(len(args)))
control = outcome(lambda optimizer, args, kwargs: lengths.append(len(args)), closure)
experiment = outcome(lambda optimizer, args, kwargs: ((closure,), {}))
print("length of args, without and with a closure:", lengths)
print("control, step(closure), the hook returns None:    ", control)
print("experiment, step(), it returns ((closure,), {}):  ", experiment)
if control != ["closure"]:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if lengths == [0, 1] and experiment == control else 1)
