"""Faults in the types of what modules give."""

from __future__ import annotations

from typing import Any

import torch

from ..engine import Fault, boundary, replaced


def tuples(original: Any) -> Any:
    """Every tuple comes out of a module as a plain one."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        output = original(self, *args, **kwargs)
        return tuple(output) if isinstance(output, tuple) else output

    return call


FAULTS = (
    Fault(
        "calls of modules: every tuple comes out as a plain one",
        lambda: replaced(torch.nn.Module, "__call__", tuples),
        ("BS-05", "BS-06"),
    ),
    Fault(
        "full backward hooks hand gradients on in the plain layout",
        lambda: boundary(
            "backward",
            lambda original: (
                lambda ctx, *grads: tuple(g if g is None else g.contiguous() for g in original(ctx, *grads))
            ),
        ),
        ("BS-08",),
    ),
)
