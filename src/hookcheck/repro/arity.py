"""A text whose functions have a parameter for each argument that they are given, where every call gives as many."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from typing import TypeVar

from hookcheck.repro.editing import quoted, start
from hookcheck.repro.formatting import WIDTH
from hookcheck.repro.names import without_name
from hookcheck.repro.parameters import calls_of, names_of
from hookcheck.repro.scopes import COMPREHENSIONS, Scopes, swapped

Made = TypeVar("Made", ast.GeneratorExp, ast.ListComp)


def counted(text: str) -> str | None:
    """The text with one function less that takes any number of arguments; None where there is none."""
    scopes = Scopes(text)
    for function in (n for n in scopes.tree.body if isinstance(n, ast.FunctionDef) and not n.decorator_list):
        calls, _ = calls_of(scopes, function)
        more = function.args.vararg
        behind = {len(call.args) - len(names_of(function)) for call in calls}
        starred = any(isinstance(argument, ast.Starred) for call in calls for argument in call.args)
        if more is None or starred or len(behind) != 1 or min(behind) < 0:
            continue
        changed = _with_names(function, more.arg, min(behind))
        if changed is not None:
            lines = text.split("\n")
            lines[function.lineno - 1 : function.end_lineno] = quoted(ast.unparse(changed)).split("\n")
            return "\n".join(lines)
    return None


def _with_names(function: ast.FunctionDef, more: str, number: int) -> ast.FunctionDef | None:
    """The function with so many parameters in the place of ``more``; None where it asks how many there are."""
    one = more[:-1] if more.endswith("s") else f"{more}_"
    names = [one] if number == 1 else [f"{one}{place}" for place in range(number)]
    changed = _Spread(more, names).visit(copy.deepcopy(function))
    assert isinstance(changed, ast.FunctionDef)
    changed.args.vararg = None
    others = {n.id for n in ast.walk(changed) if isinstance(n, ast.Name) and not hasattr(n, "spread")}
    others |= {n.arg for n in ast.walk(changed) if isinstance(n, ast.arg)}
    if more in others or others & {*names}:
        return None
    changed.args.args += [ast.arg(name) for name in names]
    return ast.fix_missing_locations(changed)


class _Spread(ast.NodeTransformer):
    """Puts names in the place of those that stand for all of them, and what is made of each in that of a loop."""

    def __init__(self, more: str, names: Sequence[str]) -> None:
        self.more, self.names = more, names

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.args = [*self._spread(node.args)]
        return node

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        self.generic_visit(node)
        node.elts = [*self._spread(node.elts)]
        return node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return self._each(node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        return self._each(node)

    def _spread(self, entries: Sequence[ast.expr]) -> Iterator[ast.expr]:
        for entry in entries:
            of = entry.value if isinstance(entry, ast.Starred) else None
            if isinstance(of, ast.Name) and of.id == self.more:
                yield from map(self._name, self.names)
            elif isinstance(of, ast.Tuple):
                yield from of.elts
            else:
                yield entry

    def _each(self, node: Made) -> ast.AST:
        first, *others = node.generators
        over, target = first.iter, first.target
        plain = isinstance(over, ast.Name) and over.id == self.more and isinstance(target, ast.Name)
        if others or first.ifs or not plain:
            return self.generic_visit(node)
        entries = [self._of(node.elt, target, name) for name in self.names]
        return ast.List(entries, ast.Load()) if isinstance(node, ast.ListComp) else ast.Tuple(entries, ast.Load())

    def _of(self, value: ast.expr, target: ast.expr, name: str) -> ast.expr:
        value = copy.deepcopy(value)
        assert isinstance(target, ast.Name)
        uses = [n for n in ast.walk(value) if isinstance(n, ast.Name) and n.id == target.id]
        return swapped(value, {use: self._name(name) for use in uses})

    def _name(self, name: str) -> ast.Name:
        result = ast.Name(name, ast.Load())
        result.spread = True  # type: ignore[attr-defined]
        return result


def unstarred(text: str) -> str | None:
    """The text with a call that is given what it was given as a tuple that is written out; None where there is none."""
    scopes = Scopes(text)
    for call in (n for n in ast.walk(scopes.tree) if isinstance(n, ast.Call)):
        plain: list[ast.expr] = []
        for argument in call.args:
            of = argument.value if isinstance(argument, ast.Starred) else None
            plain += of.elts if isinstance(of, (ast.Tuple, ast.List)) else [argument]
        if len(plain) != len(call.args) or any(a is not b for a, b in zip(plain, call.args)):
            return scopes.put({call: ast.Call(call.func, plain, call.keywords)})
    return None


FEW = 3
"""So many entries are written out."""


def listed(text: str) -> str | None:
    """The text with one list written out that is made of each entry of another one; None where there is none."""
    scopes = Scopes(text)
    for node in ast.walk(scopes.tree):
        if not isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            continue
        first, *others = node.generators
        over, target = first.iter, first.target
        if others or first.ifs or not isinstance(over, (ast.Tuple, ast.List)) or len(over.elts) > FEW:
            continue
        if isinstance(target, ast.Name) and not any(isinstance(n, ast.Starred) for n in over.elts):
            entries = [_put(node.elt, target.id, entry) for entry in over.elts]
            new = ast.List(entries, ast.Load()) if isinstance(node, ast.ListComp) else ast.Tuple(entries, ast.Load())
            call = scopes.parents[node]
            if isinstance(call, ast.Call) and node in call.args:  # its brackets may be those of the call
                return scopes.put({call: _given(call, node, new)})
            return scopes.put({node: new})
    return None


def _given(call: ast.Call, argument: ast.expr, new: ast.expr) -> ast.Call:
    """The call with another argument."""
    return ast.Call(call.func, [new if given is argument else given for given in call.args], call.keywords)


def _put(value: ast.expr, name: str, entry: ast.expr) -> ast.expr:
    value = copy.deepcopy(value)
    return swapped(value, {n: entry for n in ast.walk(value) if isinstance(n, ast.Name) and n.id == name})


def entry_alone(text: str) -> str | None:
    """The text with the one entry of a list in the place of that, where nothing but the entry is asked for."""
    scopes = Scopes(text)
    for key, _, value in scopes.given():
        loads = scopes.loads.get(key, [])
        asked = [scopes.parents[load] for load in loads]
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == 1 and loads and all(map(_first, asked)):
            return scopes.put({value: value.elts[0], **{of: of.value for of in asked if isinstance(of, ast.Subscript)}})
    return None


def _first(asked: ast.AST) -> bool:
    """Whether the first entry is asked for."""
    return isinstance(asked, ast.Subscript) and isinstance(asked.slice, ast.Constant) and asked.slice.value == 0


def handed_on(text: str) -> str | None:
    """The text with what one statement of a helper gives a name where the next one reads it, if nothing else does."""
    scopes = Scopes(text)
    helpers = [n for n in scopes.tree.body if isinstance(n, ast.FunctionDef)][:-1]
    for key, statement, value in scopes.given():
        loads = scopes.loads.get(key, [])
        of_helper = any(above in helpers for above in scopes.above(statement))
        if not of_helper or len(loads) != 1 or not isinstance(statement.targets[0], ast.Name):
            continue
        behind = _behind(scopes, statement)
        if isinstance(behind, (ast.Return, ast.Assign, ast.Expr)) and _at_once(scopes, behind, loads[0]):
            changed = scopes.put({loads[0]: value})
            if max(map(len, changed.split("\n"))) <= WIDTH:
                return without_name(changed, statement, key[1])
    return None


def _behind(scopes: Scopes, statement: ast.stmt) -> ast.stmt | None:
    """The statement after another one in its block."""
    blocks = [b for b in vars(scopes.parents[statement]).values() if isinstance(b, list) and statement in b]
    return next((following for b in blocks for following in b[b.index(statement) + 1 :][:1]), None)


def _at_once(scopes: Scopes, statement: ast.stmt, load: ast.Name) -> bool:
    """Whether a statement reads a name before it calls anything."""
    above = [*scopes.above(load)]
    if statement not in above or any(isinstance(n, (*COMPREHENSIONS, ast.Lambda)) for n in above):
        return False
    calls = (n for n in ast.walk(statement) if isinstance(n, ast.Call) and n not in above)
    return all(start(call) > start(load) for call in calls)
