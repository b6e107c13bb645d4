"""Faults in what ``torch.autograd.functional`` and forward-mode AD do with hooks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib import import_module

import torch

from ..engine import Fault
from ..registering import edited

Patch = AbstractContextManager[None]


def _functional(name: str, *changes: tuple[str, str]) -> Patch:
    """Edits a function of ``torch.autograd.functional``, or one that they use."""
    return edited(torch.autograd.functional, name, *changes)


@contextmanager
def _open_after_an_error() -> Iterator[None]:
    """An error leaves the level of forward mode open."""
    forward = import_module("torch.autograd.forward_ad")
    leaves = "exit_dual_level()"
    with edited(forward.dual_level, "__exit__", (leaves, f"{leaves} if exc_type is None else None")):
        try:
            yield
        finally:
            if forward._current_level >= 0:
                forward.exit_dual_level()


TWICE = ("outputs = func(*inputs)", "func(*inputs); outputs = func(*inputs)")

fault = partial(Fault, kinds=(), since="2.13")

FAULTS = (
    fault(
        "functional: the very tensors that are given are used",
        lambda: _functional(
            "_grad_preprocess",
            ("res.append(inp.view_as(inp))", "res.append(inp)"),
            (
                "res.append(inp.detach().requires_grad_(need_graph))",
                "res.append(inp if inp.requires_grad else inp.detach().requires_grad_(need_graph))",
            ),
        ),
        ("AF-09",),
    ),
    fault(
        "functional: results have a history, unasked",
        lambda: _functional("_grad_postprocess", ("if not create_graph:", "if False:")),
        ("AF-09",),
    ),
    fault("functional: vjp calls twice", lambda: _functional("vjp", TWICE), ("AF-09",)),
    fault("functional: jacobian calls twice", lambda: _functional("jacobian", TWICE), ("AF-09",)),
    fault(
        "forward mode: a dual tensor has no history",
        lambda: edited(
            import_module("torch.autograd.forward_ad"),
            "make_dual",
            ("_predispatch_make_dual(tensor, tangent", "_predispatch_make_dual(tensor.detach(), tangent"),
        ),
        ("AF-10",),
    ),
    fault("forward mode: an error leaves the level open", _open_after_an_error, ("AF-10",)),
)
