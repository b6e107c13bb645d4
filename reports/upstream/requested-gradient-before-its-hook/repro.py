# /// script
# dependencies = ["torch"]
# ///
"""torch.autograd.grad gives for y what y's hook has not changed, if it is asked for x as well."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html

import torch

x = torch.tensor(1.0, requires_grad=True)
y = 2 * x
y.register_hook(lambda grad: 10 * grad)
loss = 3 * y

(alone,) = torch.autograd.grad(loss, y, retain_graph=True)
together, of_x = torch.autograd.grad(loss, (y, x))
print("of y:        ", alone.item())
print("of y, with x:", together.item(), "and of x:", of_x.item())
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if of_x.item() != 60 else 0 if together.item() == 30 else 1)
