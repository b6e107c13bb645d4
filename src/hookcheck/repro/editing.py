"""Source that is changed in places: a part of a syntax tree gives way to another text."""

from __future__ import annotations

import ast
import io
import tokenize

Place = tuple[int, int]
"""A line, from 1, and a column in bytes, as syntax trees have them."""


def start(node: ast.stmt | ast.expr | ast.arg) -> Place:
    """Where a part of the source begins."""
    return node.lineno, node.col_offset


def end(node: ast.stmt | ast.expr | ast.arg) -> Place:
    """Where it ends."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.end_lineno, node.end_col_offset


def replaced(text: str, node: ast.expr, new: str) -> str:
    """The text with ``new`` in the place of a part."""
    lines = text.split("\n")
    (row, column), (end_row, end_column) = start(node), end(node)
    ahead, behind = lines[row - 1].encode()[:column].decode(), lines[end_row - 1].encode()[end_column:].decode()
    lines[row - 1 : end_row] = f"{ahead}{new}{behind}".split("\n")
    return "\n".join(lines)


def written(node: ast.expr) -> str:
    """An expression on one line, as formatters write it."""
    text = ast.unparse(node)
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(text).readline))):
        if token.type == tokenize.STRING and token.string[0] == "'" and not {'"', "\\"} & set(token.string):
            text = f'{text[: token.start[1]]}"{token.string[1:-1]}"{text[token.end[1] :]}'
    return text
