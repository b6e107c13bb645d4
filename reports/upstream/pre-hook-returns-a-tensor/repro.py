# /// script
# dependencies = ["torch"]
# ///
"""A bare tensor that a full backward pre-hook returns is taken for the tuple of its rows."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_pre_hook"):
    raise SystemExit(3)


def gradient(wrap):
    net = nn.Identity()
    net.register_full_backward_pre_hook(lambda module, grad_output: wrap(10 * grad_output[0]))
    x = torch.ones(3, requires_grad=True)
    try:
        net(x).sum().backward()
    except RuntimeError as error:
        return str(error)
    return x.grad.tolist()


control, experiment = gradient(lambda grad: (grad,)), gradient(lambda grad: grad)
print("a tuple: ", control)
print("a tensor:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != [10, 10, 10] else 0 if experiment == control else 1)
