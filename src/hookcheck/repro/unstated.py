"""A text that does what other facts are about and states nothing of it: one that is not so would end its script."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from hookcheck.repro.editing import written
from hookcheck.repro.scopes import Scopes
from hookcheck.repro.syntax import COMPARES, aims_of, is_fact, lines_of, may_name, reads, without


def past(text: str, fact: str, ended: Callable[[str], tuple[int | None, str]], failing: Callable[[str], str]) -> str:
    """The text, changed until it ends with ``fact`` or no other one is in its way; ``ended`` runs it."""
    while True:
        code, said = ended(text)
        other = failing(said) if code == 1 else ""
        changed = _unstated(text, fact, other) if other and other != fact else None
        if changed is None:
            break
        text = changed
    ends = code, said
    return next((of for of in _suppressed(text, fact) if ended(of) != ends), text) if code is None else text


def undisturbed(text: str, fact: str) -> str:
    """The text that states the fact alone: what others are about is done, if that is more than to look."""
    while True:
        tree = ast.parse(text)
        aims = aims_of(tree, fact)
        others = [(s, c) for s, c in _stating(tree, {*range(min(aims, default=0))} - aims)]
        statement, call = next(((s, c) for s, c in others if written(c.func)[6:] in ACTS), (None, None))
        if statement is None or call is None:
            return text
        act = call.args[ACTS[written(call.func)[6:]]]
        done = f"({written(act)})()" if isinstance(act, ast.Lambda) else f"{written(act)}()"
        if written(call.func)[6:] in COMPARES:
            done = "" if reads(act) else written(act)
        text = _instead(text, statement, [done] if done else [])


ACTS = {**dict.fromkeys(COMPARES, 1), "works": 1, "silent": 1}
"""The methods of the check that say how something is or that it works, and which of their arguments that is."""


def _unstated(text: str, fact: str, other: str) -> str | None:
    """The text with what is observed for another fact in the place of that; None where it cannot be so."""
    tree = ast.parse(text)
    lines = aims_of(tree, other) - aims_of(tree, fact)
    for statement, call in _stating(tree, lines):
        if isinstance(call.func, ast.Attribute) and call.func.attr in COMPARES:
            return _instead(text, statement, [] if reads(call.args[1]) else [written(call.args[1])])
    return None


def _suppressed(text: str, fact: str) -> Iterator[str]:
    """The text without one of the facts ahead that something works, whether it does or not; and without all."""
    tree = ast.parse(text)
    aims = aims_of(tree, fact)
    others = [
        (s, c)
        for s, c in _stating(tree, {*range(min(aims, default=0))} - aims, (ast.Expr, ast.Assign))
        if written(c.func)[6:] == "works"
    ]
    every = text
    for statement, call in reversed(others):
        act = written(call.args[1])
        does = f"({act})()" if isinstance(call.args[1], ast.Lambda) else f"{act}()"
        given = "".join(f"{written(target)} = " for target in getattr(statement, "targets", ()))
        new = [*([f"{given}None"] if given else []), "with suppress(Exception):", f"    {given}{does}"]
        every = _instead(every, statement, new)
        yield _instead(text, statement, new)
    yield every


def done(text: str, fact: str) -> str | None:
    """The text that does, in the place of one of the other facts that something works, what that is about."""
    scopes = Scopes(text)
    for call in ast.walk(scopes.tree):
        works = isinstance(call, ast.Call) and is_fact(call) and written(call.func)[6:] == "works"
        if isinstance(call, ast.Call) and works and not may_name(call, fact):
            return scopes.put({call: ast.Call(call.args[1], [], [])})
    return None


def unnoted(text: str) -> str | None:
    """The text without what one list is for that nobody reads; what is done to fill it is done."""
    scopes = Scopes(text)
    for key, _, value in scopes.given():
        loads = scopes.loads.get(key, [])
        if not isinstance(value, ast.List) or value.elts or len(scopes.stores[key]) != 1 or not loads:
            continue
        calls = [_appending(scopes, load) for load in loads]
        holding = [scopes.parents.get(call) if call is not None else None for call in calls]
        if not all(isinstance(holder, (ast.Expr, ast.Lambda)) for holder in holding):
            continue
        call, holder = calls[-1], holding[-1]
        assert call is not None
        if not (reads(call.args[0]) or isinstance(call.args[0], ast.Call)):
            continue
        if isinstance(holder, ast.Lambda):
            return scopes.put({call: ast.Constant(None) if reads(call.args[0]) else call.args[0]})
        assert isinstance(holder, ast.Expr)
        if not reads(call.args[0]):
            return scopes.put({call: call.args[0]})
        return _instead(text, holder, [])
    return None


def _appending(scopes: Scopes, name: ast.AST) -> ast.Call | None:
    """The call that appends something to what has a name; None where the name is used otherwise."""
    method = scopes.parents.get(name)
    call = scopes.parents.get(method) if isinstance(method, ast.Attribute) and method.attr == "append" else None
    return call if isinstance(call, ast.Call) and call.func is method and len(call.args) == 1 else None


def _stating(
    tree: ast.Module, lines: frozenset[int] | set[int], kinds: tuple[type[ast.stmt], ...] = (ast.Expr,)
) -> list[tuple[ast.stmt, ast.Call]]:
    """The statements that do no more than state a fact on one of the lines; or, of other ``kinds``, keep what it
    gives."""
    calls = ((n, getattr(n, "value", None)) for n in ast.walk(tree) if isinstance(n, kinds))
    return [(n, c) for n, c in calls if isinstance(c, ast.Call) and is_fact(c) and c.lineno in lines]


def _instead(text: str, statement: ast.stmt, new: list[str]) -> str:
    """The text with other lines in the place of a statement; without conditions and loops of which nothing is left."""
    if not new:
        scopes = Scopes(text)
        (of,) = (n for n in ast.walk(scopes.tree) if isinstance(n, ast.Expr) and n.lineno == statement.lineno)
        statement = scopes.all_of(of)
        if not scopes.alone(statement):
            return without(text, lines_of(statement))
        new = ["pass"]
    lines = text.split("\n")
    lines[statement.lineno - 1 : statement.end_lineno] = [f"{' ' * statement.col_offset}{line}" for line in new]
    return "\n".join(lines)
