# /// script
# dependencies = ["torch"]
# ///
"""save_on_cpu(pin_memory=True) raises for what a Function saves under a default CUDA device."""
# https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.save_on_cpu

import torch

if not (torch.cuda.is_available() and hasattr(torch, "set_default_device")):
    raise SystemExit(3)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


def gradient(default_device):
    x = torch.tensor([2.0, 3.0], device="cuda", requires_grad=True)
    try:
        with torch.device(default_device), torch.autograd.graph.save_on_cpu(pin_memory=True):
            y = Square.apply(x)
    except RuntimeError as error:
        return f"RuntimeError: {error}"
    y.sum().backward()
    return x.grad.tolist()


control, experiment = gradient("cpu"), gradient("cuda")
print("control:   ", control)
print("experiment:", experiment)
# The derivative of x * x is 2 * x.
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != [4.0, 6.0] else 0 if experiment == [4.0, 6.0] else 1)
