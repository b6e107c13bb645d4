"""A text without what is never run: branches that are not taken, names, functions and methods that nobody asks for."""

from __future__ import annotations

import ast

from hookcheck.repro.folding import literal, without_name
from hookcheck.repro.scopes import Scopes, pairs
from hookcheck.repro.syntax import dedented, lines_of, without


def cut(text: str) -> str | None:
    """The text without one branch that is never taken, or with what follows nothing but the branch that is."""
    scopes = Scopes(text)
    for node in ast.walk(scopes.tree):
        if isinstance(node, ast.If) and literal(node.test):
            chosen = node.body if ast.literal_eval(node.test) else node.orelse
            return _in_place(text, node, chosen)
        for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            if isinstance(block, list):
                ends = next(
                    (i for i, part in enumerate(block) if isinstance(part, (ast.Return, ast.Raise))), len(block)
                )
                if block[ends + 1 :]:
                    return without(text, set().union(*map(lines_of, block[ends + 1 :])))
    return None


def _in_place(text: str, node: ast.If, chosen: list[ast.stmt]) -> str:
    """The text with statements of a branch in the place of both; ``elif`` is an ``if`` of its own before."""
    lines = text.split("\n")
    of_another = lines[node.lineno - 1].lstrip().startswith("elif")
    first, last = node.lineno - 1, node.end_lineno or node.lineno
    if of_another:
        inner = lines[chosen[0].lineno - 1 : chosen[-1].end_lineno] if chosen else []
        head = [f"{' ' * node.col_offset}else:"] if inner else []
        return "\n".join([*lines[:first], *head, *inner, *lines[last:]])
    if not chosen:
        return without(text, set(range(first + 1, last + 1)))
    begin = min(chosen[0].lineno, *(d.lineno for d in getattr(chosen[0], "decorator_list", [])), 10**9)
    step = chosen[0].col_offset - node.col_offset
    inner = lines[begin - 1 : chosen[-1].end_lineno]
    return "\n".join([*lines[:first], *(dedented(inner) if step else inner), *lines[last:]])


def dropped(text: str) -> str | None:
    """The text without one name that is given a value that nothing reads, or one function, class or method."""
    scopes = Scopes(text)
    last = scopes.tree.body[-1]
    for key, stores in scopes.stores.items():
        if key in scopes.loads or key[1] in scopes.shared or len(stores) != 1:
            continue
        (node,) = stores
        scope, name = key
        goes = not isinstance(scope, ast.ClassDef) or _no_method(scopes, scope, name)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node is not last and goes:
            return without(text, lines_of(node)) if not scopes.alone(node) else None
        statement = scopes.parents.get(node)
        if isinstance(statement, ast.Tuple) and isinstance(node, ast.Name):
            of = scopes.parents[statement]
            if isinstance(of, ast.Assign) and any(n is node and _idle(v) for n, v in pairs(statement, of.value)):
                return without_name(text, of, name)
        given = isinstance(statement, ast.Assign) and not isinstance(scope, ast.ClassDef)
        if given and isinstance(node, ast.Name) and _idle(statement.value):  # type: ignore[union-attr]
            return without(text, lines_of(statement)) if not scopes.alone(statement) else None  # type: ignore[arg-type]
    return None


CALLED = frozenset(("forward", "backward", "setup_context", "get_extra_state", "set_extra_state", "reset_parameters"))
"""Methods that torch calls."""


def _no_method(scopes: Scopes, of: ast.ClassDef, name: str) -> bool:
    """Whether a method is one that nobody calls."""
    known = all(ast.unparse(base) in ("nn.Module", "torch.nn.Module") for base in of.bases)
    read = any(isinstance(n, ast.Attribute) and n.attr == name for n in ast.walk(scopes.tree))
    named = any(isinstance(n, ast.Constant) and n.value == name for n in ast.walk(scopes.tree))
    return known and not read and not named and not name.startswith("_") and name not in CALLED


def _idle(value: ast.expr) -> bool:
    """Whether it does nothing to work an expression out."""
    acts = (n for n in ast.walk(value) if isinstance(n, (ast.Call, ast.Yield, ast.Subscript, ast.BinOp)))
    return isinstance(value, ast.Lambda) or all(
        isinstance(n, ast.Call) and ast.unparse(n.func) == "getattr" for n in acts
    )
