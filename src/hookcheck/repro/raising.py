"""What a program ends with, as a fact: the statement that raises, and nothing that would come after it."""

from __future__ import annotations

import ast
from collections.abc import Callable

from hookcheck.repro.editing import written
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
    call = _raises(statement)
    while call is not None and ast.unparse(call.func) in PURE and call.args:  # what it is given raises
        call = call.args[0] if isinstance(call.args[0], ast.Call) else None
    if call is None:
        return None
    name = f"{written(call.func).rpartition('.')[2]} works"
    lines = text.split("\n")
    stated = f'{" " * statement.col_offset}{CHECK}.works("{name}", lambda: {written(call)})'
    lines[statement.lineno - 1 : statement.end_lineno] = [stated]
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


def _raises(statement: ast.stmt) -> ast.Call | None:
    """The call of a statement that may raise: what it does, what it gives a name, or what it states a fact about."""
    call = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    if isinstance(call, ast.Call) and is_fact(call):
        assert isinstance(call.func, ast.Attribute)
        observed = call.args[1] if call.func.attr in COMPARES else None
        return observed if isinstance(observed, ast.Call) else None
    return call if isinstance(call, ast.Call) else None
