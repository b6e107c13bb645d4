# torch 2.15.0: hookcheck repro HO-07
# /// script
# dependencies = ["torch"]
# ///
"""OptimizedModule: A handle removes its hook at the end of a ``with``, and ``remove()`` can …"""

from functools import partial

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
    raise SystemExit(3)


def check(name, observed, expected):
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(1)


def run(module, x):
    module(x).sum().backward()


module, x = (
    torch.compile(
        type("Net", (nn.Module,), {"forward": lambda module, x: 2.0 * x})(), backend="eager"
    ),
    torch.tensor([1.0], requires_grad=True),
)
if hasattr(module, "register_backward_hook"):  # the later ones came with 1.8, 2.0 and 2.1
    register = module.register_backward_hook
    act = partial(run, module, x)
    log = []
    registered = register(lambda *arguments: log.append("hook"))
    with registered as handle:
        act()
        check(
            "what the context gives is the handle: register_backward_hook",
            bool(handle is registered),
            True,
        )
    check("calls inside: register_backward_hook", len(log), 1)
