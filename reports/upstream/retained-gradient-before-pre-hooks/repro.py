# /// script
# dependencies = ["torch"]
# ///
"""A retained gradient is that from before the Node's pre-hooks, against the documented order."""
# https://docs.pytorch.org/docs/stable/notes/autograd.html#backward-hooks-execution

import torch

x = torch.tensor(1.0, requires_grad=True)
y = 2 * x
if not hasattr(y.grad_fn, "register_prehook"):
    raise SystemExit(3)
y.retain_grad()
y.grad_fn.register_prehook(lambda grad_outputs: (10 * grad_outputs[0],))
(3 * y).backward()
print("gradient of y, documented 30:", y.grad.item())
print("gradient of x, documented 60:", x.grad.item())
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if x.grad.item() != 60 else 0 if y.grad.item() == 30 else 1)
