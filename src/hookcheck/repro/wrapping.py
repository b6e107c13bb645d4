"""Lines of a script that are too long, broken as formatters break them: what is in brackets on lines of its own."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator

WIDTH = 100


def wrapped(text: str) -> str:
    """The text with each line that is too long broken once, where it ends with a bracket; comments go above it."""
    return "\n".join(part for line in text.split("\n") for part in _line(line))


def _line(line: str) -> list[str]:
    if len(line) <= WIDTH:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    try:
        code, comment, pairs, commas = _taken_apart(line.strip())
    except (tokenize.TokenError, SyntaxError, IndexError):
        return [line]
    above = [f"{indent}{comment}"] if comment else []
    if not code:
        return above
    if comment and len(indent) + len(code) <= WIDTH:
        return [*above, indent + code]
    for start, end in pairs:
        if not re.fullmatch(r"[)\]}:,]*", code[end + 1 :]) or start == end - 1:
            continue
        inside = code[start + 1 : end]
        opened, closed = f"{indent}{code[: start + 1]}", f"{indent}{code[end:]}"
        if len(inside) + len(indent) + 4 <= WIDTH:
            return [*above, opened, f"{indent}    {inside}", closed]
        places = [
            start,
            *(place for place, depth in commas if start < place < end and depth == _depth(pairs, start)),
            end,
        ]
        parts = [code[a + 1 : b].strip() for a, b in zip(places, places[1:])] if " for " not in inside else [inside]
        more = "," if len(parts) > 1 else ""
        lines = [piece for part in filter(None, parts) for piece in _line(f"{indent}    {part}{more}")]
        return [*above, opened, *lines, closed]
    return [*above, indent + code]


def _depth(pairs: list[tuple[int, int]], start: int) -> int:
    """How deep what is inside of the bracket at ``start`` lies."""
    return sum(a <= start < b for a, b in pairs)


def _taken_apart(line: str) -> tuple[str, str, list[tuple[int, int]], list[tuple[int, int]]]:
    """The code of a line, its comment, its pairs of brackets, the outer ones first, and its commas with their depth."""
    code, comment = line, ""
    opened: list[int] = []
    pairs: list[tuple[int, int]] = []
    commas: list[tuple[int, int]] = []
    for token in _tokens(line):
        column = token.start[1]
        if token.type == tokenize.COMMENT:
            code, comment = line[:column].rstrip(), token.string
        elif token.string in ("(", "[", "{") and token.type == tokenize.OP:
            opened.append(column)
        elif token.string in (")", "]", "}") and token.type == tokenize.OP:
            pairs.append((opened.pop(), column))
        elif token.string == "," and token.type == tokenize.OP:
            commas.append((column, len(opened)))
    return code, comment, sorted(pairs), commas


def _tokens(line: str) -> Iterator[tokenize.TokenInfo]:
    opens_block = line.split("#")[0].rstrip().endswith(":")
    text = f"{line}\n    pass\n" if opens_block else f"{line}\n"
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.start[0] == 1:
            yield token
