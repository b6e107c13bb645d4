"""A text with the body of a loop in the place of the ``yield`` of what it is over."""

from __future__ import annotations

import ast

from hookcheck.repro.editing import written
from hookcheck.repro.parameters import arguments_of, calls_of
from hookcheck.repro.placing import names_there
from hookcheck.repro.scopes import Scopes, pairs
from hookcheck.repro.syntax import dedented, lines_of, outside_of_functions, without


def yielded(text: str) -> str | None:
    """The text with the body of one loop in the place of the one ``yield`` of the function that the loop is over."""
    scopes = Scopes(text)
    for loop in (n for n in ast.walk(scopes.tree) if isinstance(n, ast.For)):
        call = loop.iter
        if not isinstance(call, ast.Call):
            continue
        function = next((f for f in scopes.tree.body if f is scopes.function(call)), None)
        leaves = (n for part in loop.body for n in outside_of_functions(part))
        if function is None or loop.orelse or any(isinstance(n, (ast.Break, ast.Continue)) for n in leaves):
            continue
        assert isinstance(function, ast.FunctionDef)
        inside = [n for part in function.body for n in ast.walk(part)]
        yields = [n for n in inside if isinstance(n, (ast.Yield, ast.YieldFrom))]
        statement = scopes.parents[yields[0]] if len(yields) == 1 else None
        if not isinstance(statement, ast.Expr) or any(isinstance(n, (ast.Return, ast.Try)) for n in inside):
            continue
        given = arguments_of(function, call)
        one = len(calls_of(scopes, function)[0]) == 1 and not function.decorator_list
        if not one or given != {} or not isinstance(yields[0], ast.Yield) or yields[0].value is None:
            continue
        here = scopes.scope(loop)
        mine = {name for scope, name in scopes.stores if scope is function}
        targets = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
        if mine & (names_there(scopes, here, function) - targets):
            continue
        lines = text.split("\n")
        first = function.lineno
        while not lines[first - 1].rstrip().endswith(":"):
            first += 1
        ahead = dedented(lines[first : statement.lineno - 1])
        behind = dedented(lines[statement.end_lineno or 0 : function.end_lineno])
        step = " " * (statement.col_offset - 4)
        set_one = [*pairs(loop.target, yields[0].value)]
        other = [(name, value) for name, value in set_one if written(name) != written(value)]
        if any(
            isinstance(n, ast.Name) and n.id in {written(x) for x, _ in other} for _, v in other for n in ast.walk(v)
        ):
            continue
        turn = [f"{step}{written(name)} = {written(value)}" for name, value in other]
        inner = dedented(lines[loop.body[0].lineno - 1 : loop.end_lineno])
        inner = [line[loop.col_offset :] for line in inner]
        body = [*ahead, *turn, *(f"{step}{line}" if line else "" for line in inner), *behind]
        indent = " " * loop.col_offset
        lines[loop.lineno - 1 : loop.end_lineno] = [f"{indent}{line}" if line else "" for line in body]
        changed = "\n".join(lines)
        again = next(n for n in ast.parse(changed).body if getattr(n, "name", "") == function.name)
        return without(changed, lines_of(again))
    return None
