# /// script
# dependencies = ["torch"]
# ///
"""Compiled autograd raises if there is a hook on an output that gets no gradient."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html

from contextlib import nullcontext

import torch

try:
    from torch._dynamo.compiled_autograd import _enable
except ImportError:
    raise SystemExit(3) from None


def outcome(hooked, context):
    x = torch.ones(2, requires_grad=True)
    used, unused = x.unbind()
    if hooked:
        unused.register_hook(lambda grad: None)
    try:
        with context:
            (2 * used).backward()
    except AttributeError as error:
        return f"AttributeError: {error}"
    return x.grad.tolist()


eager = outcome(True, nullcontext())
control = outcome(False, _enable(lambda graph: graph.forward))
experiment = outcome(True, _enable(lambda graph: graph.forward))
print("eager, a hook:             ", eager)
print("compiled autograd, no hook:", control)
print("compiled autograd, a hook: ", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if not eager == control == [2, 0] else 0 if experiment == eager else 1)
