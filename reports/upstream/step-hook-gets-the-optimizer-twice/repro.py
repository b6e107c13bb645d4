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


calls, lengths = [], []
optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
handle = optimizer.register_step_pre_hook(lambda *args: lengths.append(len(args[1])))
optimizer.step()
optimizer.step(closure)
handle.remove()
print("length of args, without and with a closure:", lengths)
optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: ((closure,), {}))
calls.clear()
try:
    optimizer.step()
except Exception as error:
    print(f"with ((closure,), {{}}) returned: {type(error).__name__}: {error}")
raise SystemExit(0 if lengths == [0, 1] and calls == ["closure"] else 1)
