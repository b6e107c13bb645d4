"""What a program ends with, as a fact: the statement that raises, and nothing that would come after it."""

from __future__ import annotations

import ast
from collections.abc import Callable

from hookcheck.repro.editing import replaced, written
from hookcheck.repro.names import PURE
from hookcheck.repro.syntax import CHECK, COMPARES, is_fact, lines_of, without


def raising(text: str, ends: Callable[[str], bool]) -> tuple[str, str] | None:
    """The text, of which the last function ``ends`` by an exception, up to what raises, with the fact that this works;
    and the name of the fact. None where no single call raises.
    """
    place: list[int] = []
    while True:
        block = _block(ast.parse(text), place)
        last = next((i for i in range(len(block)) if ends(_up_to(text, place, i))), None)
        if last is None:
            return None
        text = _up_to(text, place, last)
        statement = _block(ast.parse(text), place)[last]
        if not isinstance(statement, (ast.With, ast.For)):
            break
        place = [*place, last]
    of = _raises(statement)
    if isinstance(of, (ast.List, ast.Tuple)):  # what comes ahead in it is done ahead
        for count in range(1, len(of.elts)):
            shorter = replaced(text, of, written(type(of)(of.elts[:count], ast.Load())))
            if ends(shorter):
                return _stated(shorter, _block(ast.parse(shorter), place)[last], of.elts[:count])
        return _stated(text, statement, of.elts)
    return _stated(text, statement, [of]) if of is not None else None


def _stated(text: str, statement: ast.stmt, done: list[ast.expr]) -> tuple[str, str] | None:
    """The text with what is ``done`` in the place of a statement, the last as a fact; and the name of that."""
    *ahead, last = done
    while isinstance(last, ast.Call) and ast.unparse(last.func) in PURE and last.args:  # what it is given raises
        last = last.args[0]
    act = last.elt if isinstance(last, ast.ListComp) else last
    if not isinstance(act, ast.Call):
        return None
    name = f"{written(act.func).rpartition('.')[2]} works"
    acts = [*map(written, ahead), f'{CHECK}.works("{name}", lambda: {written(last)})']
    lines = text.split("\n")
    lines[statement.lineno - 1 : statement.end_lineno] = [f"{' ' * statement.col_offset}{each}" for each in acts]
    return "\n".join(lines), name


def _block(tree: ast.Module, place: list[int]) -> list[ast.stmt]:
    """The statements of the last function, or of one of its blocks, which ``place`` leads to."""
    statement = tree.body[-1]
    for index in place:
        assert isinstance(statement, (ast.FunctionDef, ast.With, ast.For))
        statement = statement.body[index]
    assert isinstance(statement, (ast.FunctionDef, ast.With, ast.For))
    return statement.body


def _up_to(text: str, place: list[int], last: int) -> str:
    """The text without the statements of a block after the last one that counts."""
    behind = _block(ast.parse(text), place)[last + 1 :]
    return without(text, set[int]().union(*map(lines_of, behind)))


def _raises(statement: ast.stmt) -> ast.expr | None:
    """What of a statement may raise: what it does, what it gives a name, or what it states a fact about."""
    of = statement.value if isinstance(statement, (ast.Expr, ast.Assign, ast.AugAssign)) else None
    if isinstance(of, ast.Call) and is_fact(of):
        assert isinstance(of.func, ast.Attribute)
        observed = of.args[1] if of.func.attr in COMPARES else None
        return observed if isinstance(observed, ast.Call) else None
    return of
