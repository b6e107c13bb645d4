"""The branches of torch's own hook code in Python, and each of them taken always or never: a fault that is found there.

A branch is a condition, an operand of one, a loop or the handler of an exception. It is forced in the syntax tree of
its module, of which the code of the one function is put in the place of what torch runs. The condition is still
evaluated, so that whatever else it does is done.
"""

from __future__ import annotations

import ast
import gc
from abc import ABCMeta
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from textwrap import shorten
from types import CodeType, FunctionType

from .engine import Fault

WHOLE = ("torch.utils.hooks", "torch.utils.module_tracker", "torch.autograd.graph")
"""Modules that are about hooks alone."""

PARTLY = ("torch.nn.modules.module", "torch._tensor", "torch.optim.optimizer")
"""Modules of which those branches count that speak of hooks, or lie within one that does."""

MODULES = (*WHOLE, *PARTLY)
"""The modules of torch whose hook code is looked at."""

NO_HOOKS = ("region_activation_memory_budget",)
"""Functions of the former that are not about hooks nevertheless."""

ALWAYS, NEVER, SKIPPED, UNHANDLED = "always", "never", "skipped", "not handled"


@dataclass(frozen=True)
class Branch:
    """A branch of the ``function`` of a ``module``: the ``text`` of its condition, how it is ``forced``, and the
    ``lines`` of the module that evaluate it. Of those that are alike otherwise it is the one with that ``number``."""

    module: str
    function: str
    text: str
    forced: str
    number: int
    lines: range

    @property
    def name(self) -> str:
        """Where it is, and how it is forced."""
        again = f" ({self.number})" if self.number > 1 else ""
        return f"{self.module}.{self.function}: {self.forced}: {self.text}{again}"

    @property
    def fault(self) -> Fault:
        """The fault of the branch being forced."""
        return Fault(self.name, lambda: forced(self), ())


@dataclass(frozen=True)
class _Place:
    """A branch in a syntax tree: the ``defs`` around it, from the outermost, and what forces it in that tree."""

    defs: tuple[str, ...]
    first_line: int
    text: str
    forced: str
    lines: range
    force: Callable[[], None]


def branches(module: str) -> list[Branch]:
    """All branches of the hook code of a module, in its order."""
    seen: Counter[tuple[str, ...]] = Counter()
    listed = []
    for place in _places(_tree(module), module in WHOLE):
        if place.defs[0] in NO_HOOKS:
            continue
        key = (".".join(place.defs), place.text, place.forced)
        seen[key] += 1
        listed.append(Branch(module, *key, seen[key], place.lines))
    return listed


@contextmanager
def forced(branch: Branch) -> Iterator[None]:
    """While it is open, torch's code takes the branch as it is forced, in all functions that there are of that code."""
    code, line = _mutant(branch)
    path = source(branch.module)
    gc.unfreeze()  # what is frozen is not among the objects that the collector lists
    living = [f for f in gc.get_objects() if type(f) is FunctionType and f.__code__.co_filename == path]
    changed = [f for f in living if (f.__code__.co_name, f.__code__.co_firstlineno) == (code.co_name, line)]
    before = [function.__code__ for function in changed]
    outer = {function: _within(function.__code__, code) for function in living if function not in changed}
    outer = {function: replacement for function, replacement in outer.items() if replacement is not function.__code__}
    originals = {function: function.__code__ for function in outer}
    try:
        for function in changed:
            function.__code__ = code
        for function, replacement in outer.items():
            function.__code__ = replacement
        _forget(branch.module)
        yield
    finally:
        for function, original in zip(changed, before):
            function.__code__ = original
        for function, original in originals.items():
            function.__code__ = original
        _forget(branch.module)


def _forget(module: str) -> None:
    """Has the abstract classes of a module asked anew what is one of them, which they remember."""
    for each in vars(import_module(module)).values():
        if isinstance(each, ABCMeta):
            each._abc_caches_clear()


def source(module: str) -> str:
    """The file of a module."""
    return str(import_module(module).__file__)


def _within(code: CodeType, mutant: CodeType) -> CodeType:
    """``code`` with ``mutant`` in the place of what has its name and line, if that is defined within it."""
    constants = tuple(
        (mutant if _alike(constant, mutant) else _within(constant, mutant))
        if isinstance(constant, CodeType)
        else constant
        for constant in code.co_consts
    )
    same = all(new is old for new, old in zip(constants, code.co_consts))
    return code if same else code.replace(co_consts=constants)


def _alike(one: CodeType, other: CodeType) -> bool:
    return (one.co_name, one.co_firstlineno) == (other.co_name, other.co_firstlineno)


@cache
def _text(module: str) -> str:
    return Path(source(module)).read_text(encoding="utf-8")


def _tree(module: str) -> ast.Module:
    return ast.parse(_text(module))


@cache
def _mutant(branch: Branch) -> tuple[CodeType, int]:
    """The code of the function with the branch forced, and the line that it begins in."""
    tree = _tree(branch.module)
    number = 0
    for place in _places(tree, branch.module in WHOLE):
        if (".".join(place.defs), place.text, place.forced) == (branch.function, branch.text, branch.forced):
            number += 1
            if number == branch.number:
                place.force()
                break
    whole = compile(ast.fix_missing_locations(tree), source(branch.module), "exec", dont_inherit=True)
    code = next(c for c in _codes(whole) if (c.co_name, c.co_firstlineno) == (place.defs[-1], place.first_line))
    return code, place.first_line


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _places(tree: ast.AST, whole: bool) -> Iterator[_Place]:
    """Where the tree branches; in what is not ``whole`` about hooks, in what speaks of them."""
    yield from _in(tree, (), 0, whole)


def _in(node: ast.AST, defs: tuple[str, ...], line: int, speaks: bool) -> Iterator[_Place]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
            is_function = isinstance(child, ast.FunctionDef)
            yield from _in(child, (*defs, child.name), first if is_function else 0, speaks)
            continue
        about = speaks or _about_hooks(child)
        if line and about:
            yield from (_Place(defs, line, *each) for each in _forcible(child))
        yield from _in(child, defs, line, speaks or _head_about_hooks(child))


_Forcible = tuple[str, str, range, Callable[[], None]]


def _forcible(node: ast.AST) -> Iterator[_Forcible]:
    """What can be forced at a node: text, how, lines, and what does it."""
    if isinstance(node, (ast.If, ast.IfExp)):
        for how in (ALWAYS, NEVER):
            yield _condition(node, node.test, how)
    elif isinstance(node, ast.While):
        yield _condition(node, node.test, NEVER)  # one that always goes on never ends
    elif isinstance(node, ast.Assert):
        yield _condition(node, node.test, ALWAYS)
    elif isinstance(node, (ast.For, ast.comprehension)):
        yield _said(node.iter), SKIPPED, _lines(node.iter), lambda: setattr(node, "iter", _second(node.iter, "()"))
        for at, test in enumerate(node.ifs if isinstance(node, ast.comprehension) else ()):
            for how in (ALWAYS, NEVER):
                forced_test = _forced_test(test, how)
                yield (
                    _said(test),
                    how,
                    _lines(test),
                    lambda at=at, forced_test=forced_test: node.ifs.__setitem__(at, forced_test),
                )
    elif isinstance(node, ast.BoolOp):
        how = ALWAYS if isinstance(node.op, ast.And) else NEVER
        for at, value in enumerate(node.values):
            forced_test = _forced_test(value, how)
            text = f"{_said(value)} in {shorten(_said(node), 60, placeholder=' …')}"
            yield (
                text,
                how,
                _lines(value),
                lambda at=at, forced_test=forced_test: node.values.__setitem__(at, forced_test),
            )
    elif isinstance(node, ast.ExceptHandler):
        text = f"except {_said(node.type) if node.type else ''}".rstrip()
        yield text, UNHANDLED, range(node.lineno, node.lineno + 1), lambda: node.body.insert(0, ast.Raise())


def _condition(node: ast.If | ast.IfExp | ast.While | ast.Assert, test: ast.expr, how: str) -> _Forcible:
    return _said(test), how, _lines(test), lambda: setattr(node, "test", _forced_test(test, how))


def _forced_test(test: ast.expr, how: str) -> ast.expr:
    """What evaluates ``test``, and is true or false nevertheless."""
    return _second(ast.UnaryOp(ast.Not(), test), str(how == ALWAYS))


def _second(first: ast.expr, second: str) -> ast.expr:
    """``(first, second)[1]``."""
    other = ast.parse(second, mode="eval").body
    return ast.Subscript(ast.Tuple([first, other], ast.Load()), ast.Constant(1), ast.Load())


def _said(node: ast.AST) -> str:
    return ast.unparse(node)


def _lines(node: ast.expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _about_hooks(node: ast.AST) -> bool:
    """Whether what a branch asks, or what it then does, speaks of hooks."""
    then = node.body if isinstance(node, (ast.If, ast.For, ast.While, ast.ExceptHandler)) else []
    return _head_about_hooks(node) or any("hook" in _said(each).lower() for each in then)


def _head_about_hooks(node: ast.AST) -> bool:
    """Whether what a branch asks speaks of hooks."""
    head: list[ast.AST] = [getattr(node, field) for field in ("test", "iter") if hasattr(node, field)]
    if isinstance(node, ast.BoolOp):
        head.append(node)
    return any("hook" in _said(each).lower() for each in head)
