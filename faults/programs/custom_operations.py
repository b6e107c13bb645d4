"""Faults in how an operation of one's own is made a part of autograd."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module

from ..engine import Fault
from ..registering import edited

Patch = AbstractContextManager[None]


def _edited(owner: str, name: str, *changes: tuple[str, str]) -> Patch:
    """Edits what registers operations."""
    module, _, kind = owner.partition(":")
    place = import_module(module)
    return edited(getattr(place, kind) if kind else place, name, *changes)


def _formulas(*changes: tuple[str, str]) -> Patch:
    """Edits what makes a Function of a formula."""
    return _edited("torch._library.autograd", "make_autograd_impl", *changes)


fault = partial(Fault, kinds=(), since="2.13")

FAULTS = (
    fault(
        "custom operations: one input too many needs a gradient or none",
        lambda: _formulas(("ctx.needs_input_grad = ctx.needs_input_grad[:-1]", "pass")),
        ("AF-12",),
    ),
    fault(
        "custom operations: inputs that have their defaults are not told",
        lambda: _formulas(("args, kwargs = utils.fill_defaults(op._schema, args, kwargs)", "pass")),
        ("AF-07", "AF-12"),
    ),
    fault(
        "custom operations: the formula is asked where nothing needs a gradient",
        lambda: _formulas(("if _C.is_grad_enabled() and _C._any_requires_grad(*args):", "if True:")),
        ("AF-07",),
    ),
    fault(
        "custom operations: no formula is no gradient",
        lambda: _formulas(
            (
                'raise RuntimeError(\n            f"Trying',
                'return (None,) * len(ctx.needs_input_grad)\n        raise RuntimeError(\n            f"Trying',
            )
        ),
        ("AF-08",),
    ),
    fault(
        "custom operations: the gradients of a list are in reverse",
        lambda: _edited(
            "torch._library.autograd",
            "supports_tensorlist",
            (
                "grads = _pytree.tree_unflatten(list(grads), metadata",
                "grads = _pytree.tree_unflatten(list(grads)[::-1], metadata",
            ),
        ),
        ("AF-08",),
    ),
    fault(
        "custom operations: what is written to counts as it was",
        lambda: _edited(
            "torch._library.custom_ops:CustomOpDef",
            "_register_mutation_version_bump",
            ("increment_version(all_args[idx])", "pass"),
        ),
        ("AF-08",),
    ),
)
