# torch 2.15.0: hookcheck repro HO-07
# /// script
# dependencies = ["torch"]
# ///
"""OptimizedModule: With ``create_graph`` a returned grad_input is a part of the graph: its own
derivatives are right."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def plain(value):
    return value.tolist() if isinstance(value, torch.Tensor) else value


def check(name, observed, expected):
    observed, expected = plain(observed), plain(expected)
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(2 if name == "without torch.compile" else 1)


for experiment in (False, True):
    x, tripled = (
        torch.tensor([2.0], requires_grad=True),
        (
            torch.compile(
                type("Net", (nn.Module,), {"forward": lambda module, x: 3.0 * x})(), backend="eager"
            )
            if experiment
            else type("Net", (nn.Module,), {"forward": lambda module, x: 3.0 * x})()
        ),
    )
    tripled.register_full_backward_hook(
        lambda module, grad_input, grad_output: (x * x * grad_input[0],)
    )
    (first,) = torch.autograd.grad(tripled(x).sum(), x, create_graph=True)
    name = "what replaces the derivative" if experiment else "without torch.compile"
    check(name, first, [12])  # 3 x²
