"""Source that is changed in places: a part of a syntax tree gives way to another text."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator

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


def source(text: str, node: ast.expr) -> str:
    """A part as it is written; `ast.get_source_segment` goes through all of the text for each."""
    (row, column), (end_row, end_column) = start(node), end(node)
    lines = [line.encode() for line in text.split("\n")[row - 1 : end_row]]
    lines[-1] = lines[-1][:end_column]
    lines[0] = lines[0][column:]
    return b"\n".join(lines).decode()


def replaced(text: str, node: ast.expr, new: str) -> str:
    """The text with ``new`` in the place of a part."""
    lines = text.split("\n")
    (row, column), (end_row, end_column) = start(node), end(node)
    ahead, behind = lines[row - 1].encode()[:column].decode(), lines[end_row - 1].encode()[end_column:].decode()
    lines[row - 1 : end_row] = f"{ahead}{new}{behind}".split("\n")
    return "\n".join(lines)


def written(node: ast.expr) -> str:
    """An expression on one line, as formatters write it."""
    return quoted(ast.unparse(node))


def quoted(text: str) -> str:
    """The text with its strings in double quotes, where that changes no more of them."""
    text = text.replace("lambda :", "lambda:")  # as Python 3.9 writes it
    lines = text.split("\n")
    for (row, first), (last_row, end) in reversed([*_strings(text)]):
        line = lines[row - 1]
        prefix, quote, inner = line[first:end].partition("'")
        if row == last_row and not {'"', "\\"} & {*prefix, *inner} and quote and not inner.startswith("''"):
            lines[row - 1] = f'{line[:first]}{prefix}"{inner[:-1]}"{line[end:]}'
    return "\n".join(lines)


def _strings(text: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Where the strings of a text begin and end, those apart that stand in another one: since Python 3.12 its tokens
    tell of them as well."""
    within: list[tuple[int, int]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        name = tokenize.tok_name[token.type]
        if name == "FSTRING_START":
            within.append(token.start)
        elif name == "FSTRING_END":
            begun = within.pop()
            if not within:
                yield begun, token.end
        elif name == "STRING" and not within:
            yield token.start, token.end
