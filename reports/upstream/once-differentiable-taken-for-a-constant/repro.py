# /// script
# dependencies = ["torch"]
# ///
"""once_differentiable lets double backward pass silently, with a part of the derivative missing."""

import torch
from torch.autograd.function import once_differentiable


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        return 2 * ctx.saved_tensors[0] * gradient


def second(requires_grad, inputs):
    """The second derivative of x² + x³ at 3, which is 2 + 6x = 20, or the error."""
    x = torch.tensor(3.0, requires_grad=True)
    start = torch.tensor(1.0, requires_grad=requires_grad)
    (first,) = torch.autograd.grad(Square.apply(x) + x**3, x, start, create_graph=True)
    try:
        if inputs:
            return torch.autograd.grad(first, x)[0].item()
        first.backward()
    except RuntimeError as error:
        return f"RuntimeError: {error}"
    return x.grad.item()


control = second(True, False)
print("grad_output that requires grad, backward():", control)
if "once_differentiable" not in str(control):
    raise SystemExit(2)  # the control fails
wrong = False
for requires_grad, inputs in ((True, True), (False, False), (False, True)):
    result = second(requires_grad, inputs)
    wrong = wrong or "once_differentiable" not in str(result)
    way = "torch.autograd.grad(first, x)" if inputs else "backward()"
    print(f"grad_output that requires {'grad' if requires_grad else 'none'}, {way}: {result}")
raise SystemExit(1 if wrong else 0)
