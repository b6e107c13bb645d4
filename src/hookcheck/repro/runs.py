"""Two runs of one function, a control and an experiment: how their lines become one body."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence

from hookcheck.repro.formatting import WIDTH
from hookcheck.repro.scopes import Scopes


def forked(experiment: Sequence[str], control: Sequence[str]) -> list[str]:
    """One body for both, which go apart in one place; no block begins in it and ends outside of it."""
    ahead = _alike(experiment, control)
    behind = _alike(experiment[ahead:][::-1], control[ahead:][::-1])
    while True:
        a, b = (side[ahead : len(side) - behind] for side in (experiment, control))
        level = min(map(_indent, (*a, *b)), default=0)
        if behind and _indent(experiment[len(experiment) - behind]) > level:
            behind -= 1
        elif ahead and any(_indent(side[0]) > level for side in (a, b) if side):
            ahead -= 1
        else:
            break
    line = _one_line(a[0], b[0]) if len(a) == len(b) == 1 else None
    if line:
        return [*experiment[:ahead], line, *experiment[len(experiment) - behind :]]
    indent = " " * level
    fork = [f"{indent}if experiment:", *(f"    {line}" for line in a)] if a else []
    other = [f"{indent}{'else' if a else 'if not experiment'}:", *(f"    {line}" for line in b)] if b else []
    return [*experiment[:ahead], *fork, *other, *experiment[len(experiment) - behind :]]


def _one_line(experiment: str, control: str) -> str | None:
    """Two lines as one that has a condition where they differ, if it is short, and they are statements."""
    try:
        scopes, other = (Scopes(textwrap.dedent(line)) for line in (experiment, control))
        ((a, b),) = _apart(scopes.tree, other.tree) or [(scopes.tree, other.tree)]
        if not isinstance(a, ast.expr) or not isinstance(b, ast.expr):
            return None
        line = scopes.put({a: ast.IfExp(ast.Name("experiment", ast.Load()), a, b)})
        ast.parse(line)  # what they give values to may have other names
    except SyntaxError:  # the head of a block
        return None
    indent = experiment[: len(experiment) - len(experiment.lstrip())]
    return indent + line if len(indent + line) + 4 <= WIDTH else None


def _apart(a: ast.AST, b: ast.AST) -> list[tuple[ast.AST, ast.AST]]:
    """The smallest part of two trees that holds all in which they differ; none where they are alike."""
    if ast.dump(a) == ast.dump(b):
        return []
    sides = [[*ast.iter_child_nodes(tree)] for tree in (a, b)]
    named = [{name: value for name, value in ast.iter_fields(tree) if not _holds(value)} for tree in (a, b)]
    if type(a) is not type(b) or len(sides[0]) != len(sides[1]) or named[0] != named[1]:
        return [(a, b)]
    inner = [pair for pairs in zip(*sides) for pair in _apart(*pairs)]
    return inner if len(inner) == 1 and isinstance(inner[0][0], (ast.expr, ast.stmt)) else [(a, b)]


def _holds(value: object) -> bool:
    return isinstance(value, (ast.AST, list))


def _alike(some: Sequence[str], others: Sequence[str]) -> int:
    """How many lines the two have in common as they begin."""
    return next((i for i, (a, b) in enumerate(zip(some, others)) if a != b), min(len(some), len(others)))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
