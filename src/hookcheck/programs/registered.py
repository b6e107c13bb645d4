"""The hook kinds that a program registers, by the names that its code and the helpers that it calls use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from hookcheck.hooks.kinds import KINDS
from hookcheck.programs.program import Program


def hook_kinds(program: Program) -> tuple[str, ...]:
    """The hook kinds whose registering function the program names, those that look on: one that acts registers alike.

    A name that several kinds share (``register_hook`` of leaves, outputs and Nodes) stands for all of them.
    """
    names = frozenset(_names(program.judge, set()))
    return tuple(
        kind.name
        for kind in KINDS.values()
        if kind.observes and kind.register in names and (not kind.kwargs or "with_kwargs" in names)
    )


def _names(function: Any, seen: set[Any]) -> Iterator[str]:
    """The names and texts in the code of a function, and of the functions and classes of ours that it uses."""
    if function in seen:
        return
    seen.add(function)
    if isinstance(function, type):
        for method in vars(function).values():
            if isinstance(method, FunctionType):
                yield from _names(method, seen)
        return
    names = set(_of_code(function.__code__))
    yield from names
    for name in names:
        used = function.__globals__.get(name)
        if isinstance(used, (FunctionType, type)) and used.__module__.startswith("hookcheck."):
            yield from _names(used, seen)


def _of_code(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _of_code(constant)
        elif isinstance(constant, str):
            yield from re.findall(r"\w+", constant)  # the text of a program may be run in another process
        elif isinstance(constant, tuple):  # the names of keyword arguments
            yield from (item for item in constant if isinstance(item, str))
