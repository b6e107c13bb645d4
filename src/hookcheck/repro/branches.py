"""A text with the branch that its run takes in the place of a condition, where that is one and the same each time."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping

from hookcheck.repro.editing import quoted
from hookcheck.repro.scopes import Scopes

Run = Callable[[str], "tuple[int | None, str]"]

NOTING = """def noting(place, condition):
    print("condition", place, bool(condition))
    return condition"""

NOTED = re.compile(r"(?m)^condition (\d+) (True|False)$")


def one_branch(text: str, run: Run, hooks: Collection[str] = ()) -> str:
    """The text with the branches that its functions take, but for the last one and those that ``hooks`` call: what the
    others ask is about what a network is given and gives, and that is the same on every torch."""
    functions = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)][:-1]
    functions = [function for function in functions if function.name not in hooks]
    conditions = [n for f in functions for n in ast.walk(f) if isinstance(n, (ast.If, ast.IfExp))]
    if not conditions:
        return text
    places = {node: place for place, node in enumerate(conditions)}
    taken = _taken(text, [*map(_place, conditions)], run)
    lines = text.split("\n")
    for function in reversed(functions):
        chosen = {node: taken[place] for node, place in places.items() if place in taken and node in ast.walk(function)}
        if chosen:
            changed = _Chosen(chosen).visit(function)
            lines[function.lineno - 1 : function.end_lineno] = quoted(ast.unparse(changed)).split("\n")
    return "\n".join(lines)


def _place(node: ast.If | ast.IfExp) -> tuple[int, int, type[ast.AST]]:
    return node.lineno, node.col_offset, type(node)


def _taken(text: str, places: list[tuple[int, int, type[ast.AST]]], run: Run) -> Mapping[int, bool]:
    """Which conditions came out alike each time, and how."""
    scopes = Scopes(text)
    by_place = {_place(n): n for n in ast.walk(scopes.tree) if isinstance(n, (ast.If, ast.IfExp))}
    noted: dict[ast.expr, ast.expr] = {
        by_place[where].test: ast.Call(ast.Name("noting"), [ast.Constant(i), by_place[where].test], [])
        for i, where in enumerate(places)
    }
    code, said = run(f"{NOTING}\n\n\n{scopes.put(noted)}")
    values: dict[int, set[str]] = defaultdict(set)
    for place, value in NOTED.findall(said) if code == 1 else ():
        values[int(place)].add(value)
    return {place: value == {"True"} for place, value in values.items() if len(value) == 1}


class _Chosen(ast.NodeTransformer):
    """Puts the branch that is taken in the place of both."""

    def __init__(self, chosen: Mapping[ast.If | ast.IfExp, bool]) -> None:
        self.chosen = chosen

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        taken = self.chosen.get(node)
        return node if taken is None else node.body if taken else node.orelse

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        taken = self.chosen.get(node)
        return node if taken is None else (node.body if taken else node.orelse) or ast.Pass()
