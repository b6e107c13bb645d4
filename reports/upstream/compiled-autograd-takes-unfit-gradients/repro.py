# /// script
# dependencies = ["torch"]
# ///
"""Under compiled autograd a hook may change the gradient's shape or type, unnoticed."""
# https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html

from contextlib import nullcontext

import torch

try:
    from torch._dynamo.compiled_autograd import _enable
except ImportError:
    raise SystemExit(3) from None


def outcome(change, context):
    x = torch.zeros(2, requires_grad=True)
    y = x.exp()
    y.register_hook(change)
    try:
        with context:
            (y * torch.tensor([1.0, 2.0])).sum().backward()
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return x.grad.tolist()


same = outcome(lambda grad: grad.clone(), _enable(lambda graph: graph.forward))
if same != [1, 2]:
    raise SystemExit(2)  # the control fails
wrong = False
for name, change in (("shape", lambda grad: grad[:1]), ("type", lambda grad: grad.double())):
    control = outcome(change, nullcontext())
    experiment = outcome(change, _enable(lambda graph: graph.forward))
    print(f"{name}, eager:             {control}")
    print(f"{name}, compiled autograd: {experiment}")
    if "has changed" not in control:
        raise SystemExit(2)  # the control fails
    wrong |= type(experiment) is list
raise SystemExit(1 if wrong else 0)
