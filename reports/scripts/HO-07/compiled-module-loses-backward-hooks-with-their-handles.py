# torch 2.15.0: hookcheck repro HO-07
# /// script
# dependencies = ["torch"]
# ///
"""OptimizedModule: A handle removes its hook at the end of a ``with``, and ``remove()`` can be
called again and again."""

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def check(name, observed, expected):
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(1 if name == "calls inside: register_backward_hook" else 2)


module, x = (
    torch.compile(
        type("Net", (nn.Module,), {"forward": lambda module, x: 2.0 * x})(), backend="eager"
    ),
    torch.tensor([1.0], requires_grad=True),
)
register = module.register_backward_hook
log = []
registered = register(lambda *arguments: log.append("hook"))
with registered as handle:
    module(x).sum().backward()
    check(
        "what the context gives is the handle: register_backward_hook",
        bool(handle is registered),
        True,
    )
check("calls inside: register_backward_hook", len(log), 1)
