# torch 2.15.0: hookcheck repro HO-07
# /// script
# dependencies = ["torch"]
# ///
"""OptimizedModule of a container: A hook that comes during a call runs in it if its kind's
turn is yet to come, else from the next call on; that of backward kinds is when the call …"""

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 4):
    raise SystemExit(3)


def check(name, observed, expected):
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(2 if name.startswith("in") else 1)


def noting(log, word):
    return lambda *arguments: log.append(word)


kinds = ("forward_pre_hook", "forward_hook", "full_backward_pre_hook", "full_backward_hook")
log = []
added = []
coming = ["forward_pre_hook"]


def add(module, *arguments):
    if coming:
        getattr(module, f"register_{coming.pop()}")(noting(added, "added"))


def forward(module, x):
    return 2 * x


optimized_module = type("Net", (nn.Module,), {"forward": forward})()
module = torch.compile(optimized_module, backend="eager")
for other in kinds:
    getattr(module, f"register_{other}")(add if other == "forward_pre_hook" else noting([], ""))
    getattr(module, f"register_{other}")(noting(log, other))

module(torch.tensor([1.0], requires_grad=True)).sum().backward()
once = len(added)
module(torch.tensor([1.0], requires_grad=True)).sum().backward()
counts = [once, len(added)]
check("in both calls: a forward_pre_hook that comes in a forward_pre_hook", counts[1], 0 + 1)
check(
    "the other hooks: a forward_pre_hook that comes in a forward_pre_hook",
    list(log),
    [*kinds, *kinds],
)
