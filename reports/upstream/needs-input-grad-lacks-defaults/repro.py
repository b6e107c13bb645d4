# /// script
# dependencies = ["torch"]
# ///
"""ctx.needs_input_grad of a custom_op has no entry for an input that is left at its default."""
# https://docs.pytorch.org/docs/stable/library.html

import torch
from torch import Tensor

if not hasattr(getattr(torch, "library", None), "custom_op"):
    raise SystemExit(3)

log = []


@torch.library.custom_op("repro::scale", mutates_args=())
def scale(x: Tensor, bias: Tensor | None = None) -> Tensor:
    return 2 * x if bias is None else 2 * x + bias


def setup_context(ctx, inputs, output):
    log.append(len(inputs))


def backward(ctx, grad):
    log.append(ctx.needs_input_grad)
    return 2 * grad, grad if len(ctx.needs_input_grad) > 1 and ctx.needs_input_grad[1] else None


scale.register_autograd(backward, setup_context=setup_context)
x, bias = torch.ones(1, requires_grad=True), torch.ones(1)
scale(x, bias).backward()
control = log[:]
log.clear()
scale(x).backward()
print("control, a bias that needs no gradient: inputs, needs_input_grad:", *control)
print("experiment, no bias:                    inputs, needs_input_grad:", *log)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != [2, (True, False)] else 0 if log == control else 1)
