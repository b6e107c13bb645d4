"""A text in which what a context does is not undone: its script ends, and its process with it."""

from __future__ import annotations

import ast

from hookcheck.repro.editing import written
from hookcheck.repro.parameters import calls_of
from hookcheck.repro.scopes import Scopes
from hookcheck.repro.syntax import dedented, lines_of, reads, without


def left_open(text: str) -> str | None:
    """The text with what one context does, and without what it does at its end; None where something acts after that.

    It is what a function of the text manages, which waits for what is done in it within ``try`` and ``finally``.
    """
    scopes = Scopes(text)
    for place, block in enumerate(scopes.tree.body):
        if not isinstance(block, ast.With) or len(block.items) > 1:
            continue
        call = block.items[0].context_expr
        function = scopes.function(call) if isinstance(call, ast.Call) else None
        if not isinstance(function, ast.FunctionDef) or not all(map(reads, scopes.tree.body[place + 1 :])):
            continue
        waits = _waits(function)
        given = isinstance(call, ast.Call) and bool(call.args or call.keywords)
        if waits is None or given or len(calls_of(scopes, function)[0]) != 1:
            continue
        lines = text.split("\n")
        names = block.items[0].optional_vars
        head = f"{written(names)} = {written(call)}" if names is not None else written(call)
        inner = dedented(lines[block.body[0].lineno - 1 : block.end_lineno])
        lines[block.lineno - 1 : block.end_lineno] = [head, *inner]
        ends = function.body[-1]
        lines[ends.lineno - 1 : ends.end_lineno] = [f"    return {written(waits)}"]
        gone = set[int]().union(*map(lines_of, _for_the_end(function)), {function.lineno - 1})
        return without("\n".join(lines), gone)
    return None


def _waits(function: ast.FunctionDef) -> ast.expr | None:
    """What a function that manages a context gives to what is done in it; None if it is another one."""
    ends = function.body[-1]
    manages = [ast.unparse(d) for d in function.decorator_list] == ["contextmanager"] and not function.args.args
    if not manages or not isinstance(ends, ast.Try) or ends.handlers or ends.orelse or len(ends.body) > 1:
        return None
    only = ends.body[0]
    waits = isinstance(only, ast.Expr) and isinstance(only.value, ast.Yield)
    return (only.value.value or ast.Constant(None)) if waits else None  # type: ignore[attr-defined]


def _for_the_end(function: ast.FunctionDef) -> list[ast.stmt]:
    """The statements that only note what the end of a context puts back."""
    *ahead, ends = function.body
    assert isinstance(ends, ast.Try)
    wanted, noting = {n.id for part in ends.body for n in ast.walk(part) if isinstance(n, ast.Name)}, []
    for part in reversed(ahead):
        targets = part.targets if isinstance(part, ast.Assign) else []
        names = {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
        if names and not names & wanted and reads(part):
            noting.append(part)
        else:
            wanted |= {n.id for n in ast.walk(part) if isinstance(n, ast.Name)}
    return noting
