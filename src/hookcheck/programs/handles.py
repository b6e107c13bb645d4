"""The kinds of hooks that have a handle: on what and by which function they are registered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hookcheck.probe.lazy import nn, torch

MODULE, GLOBAL, LEAF, OUTPUT, NODE, SEVERAL = "module", "global", "leaf", "output", "node", "several"

KINDS = {
    "forward pre-hook": (MODULE, "register_forward_pre_hook"),
    "forward hook": (MODULE, "register_forward_hook"),
    "full backward hook": (MODULE, "register_full_backward_hook"),
    "full backward pre-hook": (MODULE, "register_full_backward_pre_hook"),
    "legacy backward hook": (MODULE, "register_backward_hook"),
    "global forward pre-hook": (GLOBAL, "register_module_forward_pre_hook"),
    "global forward hook": (GLOBAL, "register_module_forward_hook"),
    "global full backward hook": (GLOBAL, "register_module_full_backward_hook"),
    "global full backward pre-hook": (GLOBAL, "register_module_full_backward_pre_hook"),
    "global legacy backward hook": (GLOBAL, "register_module_backward_hook"),
    "tensor hook on a leaf": (LEAF, "register_hook"),
    "post-accumulate-grad hook": (LEAF, "register_post_accumulate_grad_hook"),
    "tensor hook on an output": (OUTPUT, "register_hook"),
    "node hook": (NODE, "register_hook"),
    "node pre-hook": (NODE, "register_prehook"),
    "multi-grad hook": (SEVERAL, "register_multi_grad_hook"),
}
"""On what each kind is registered, and by which function."""

EARLY = (MODULE, GLOBAL, LEAF)
"""What is there before the module is called: a hook on it is registered ahead of the call, others after it."""


def call_hooked(kind: str, net: Any, x: Any, hook: Callable[..., None]) -> tuple[Any, Any]:
    """What a module gives for the square of ``x``, and the handle of a hook of one kind, registered before or after."""
    owner, register = KINDS[kind]
    if owner in EARLY:
        on = {MODULE: net, GLOBAL: torch.nn.modules.module, LEAF: x}[owner]
        handle = getattr(on, register)(hook)
        return net(x * x), handle
    y = net(x * x)
    if owner == SEVERAL:
        return y, getattr(torch.autograd.graph, register)((y, x * 5), hook)
    return y, getattr({OUTPUT: y, NODE: y.grad_fn}[owner], register)(hook)


def kinds(*owners: str) -> list[str]:
    """The kinds that this torch has, on some things or on all."""
    has: dict[str, Any] = {
        MODULE: nn.Module,
        GLOBAL: torch.nn.modules.module,
        LEAF: torch.Tensor,
        OUTPUT: torch.Tensor,
        NODE: (torch.ones(1, requires_grad=True) * 2).grad_fn,
        SEVERAL: getattr(torch.autograd, "graph", None),
    }
    return [
        kind for kind, (owner, name) in KINDS.items() if (not owners or owner in owners) and hasattr(has[owner], name)
    ]


@contextmanager
def restored() -> Iterator[None]:
    """Puts global tables and flags back: hooks of one global family exclude those of the other."""
    from hookcheck.probe.state import preserved  # imports torch

    with preserved():
        yield
