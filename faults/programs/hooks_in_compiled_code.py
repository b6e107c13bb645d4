"""Faults in how torch.compile treats hooks that compiled code registers, and hooks on its results and its layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from ..engine import Fault, replaced


def _keeping_hooks(original: Any) -> Any:
    """What is compiled runs as it is, with handles that remove nothing."""

    def compiled(what: Any, **options: Any) -> Any:
        def call(x: Any) -> Any:
            with replaced(RemovableHandle, "remove", lambda _: lambda handle: None):
                return what(x)

        return call

    return compiled


def _apart(original: Any) -> Any:
    """The first of several results is a copy of what the others are made of."""

    def compiled(what: Any, **options: Any) -> Any:
        def call(x: Any) -> Any:
            first, *others = what(x)
            return (first.clone(), *others)

        return call

    return compiled


def _afresh(original: Any) -> Any:
    """Nothing is known of what was compiled before."""

    def compiled(what: Any, **options: Any) -> Any:
        torch._dynamo.reset()
        return original(what, **options)

    return compiled


FAULTS = tuple(
    Fault(f"torch.compile: {what}", lambda change=change: replaced(torch, "compile", change), clauses, (), since)
    for what, change, clauses, since in (
        ("handles remove nothing", _keeping_hooks, ("CC-01",), "2.1"),
        ("a result is not what another is made of", _apart, ("CC-02",), "2.1"),
        ("each layer is compiled anew", _afresh, ("CC-03",), "2.6"),
        ("nothing is compiled", lambda original: _uncompiled, ("CC-04",), "2.5"),
    )
)


def _uncompiled(what: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return what
