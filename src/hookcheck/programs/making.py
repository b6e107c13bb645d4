"""By which names does a program make modules and optimizers? Read from its code, without running it.

What `hookcheck.programs.hosting` replaces are these names alone, in the module of the program and in
`hookcheck.programs.watching`: a program that makes its modules otherwise, by a class of its own or by functions that
are elsewhere, is the same on a host as on none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial
from types import CodeType, FunctionType
from typing import Any

from hookcheck.probe.lazy import nn, torch
from hookcheck.programs import nets, watching
from hookcheck.programs.hosting import ALL_MODULES, BY_HAND, CONTAINERS, OPTIMIZERS
from hookcheck.programs.program import Program

FUNCTIONS = {name: getattr(nets, name) for name in (*BY_HAND, *CONTAINERS) if hasattr(nets, name)}
CLASSES = {name for name in ALL_MODULES if name not in FUNCTIONS}


@cache
def makes(program: Program) -> frozenset[str]:
    """The names of `hookcheck.programs.hosting` by which a program, or what it calls, makes something."""
    places = {program.judge.__module__, watching.__name__}
    names, seen, todo = set[str](), set[int](), [program.judge]
    while todo:
        value = todo.pop()
        if id(value) not in seen:
            seen.add(id(value))
            todo += _within(value, places)
            if isinstance(value, FunctionType) and value.__module__ in places:
                names.update(_named(value))
    return frozenset(names)


def _named(function: FunctionType) -> Iterator[str]:
    """The names of what makes something in the code of a function."""
    used = {name for code in _codes(function.__code__) for name in code.co_names}
    for name in used & {*function.__globals__}:
        value = function.__globals__[name]
        if value is FUNCTIONS.get(name, function):
            yield name
        elif value is nn:
            yield from used & CLASSES
        elif value is torch:
            yield from used & {*OPTIMIZERS}


def _codes(code: CodeType) -> Iterator[CodeType]:
    """That of a function, and of those in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _within(value: Any, places: set[str]) -> list[Any]:
    """What a value holds or, if it is a function of those places, speaks of."""
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, Mapping):
        return [*value.values()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [*value]
    if getattr(value, "__module__", None) not in places:
        return []
    if isinstance(value, type):
        return [*vars(value).values()]
    if not isinstance(value, FunctionType):
        return []
    used = {name for code in _codes(value.__code__) for name in code.co_names}
    cells = (cell.cell_contents for cell in value.__closure__ or ())
    wrapped = vars(value).get("__wrapped__")
    return [wrapped, *cells, *(value.__globals__[name] for name in used & {*value.__globals__})]
