"""Lines of a script that are too long, broken as formatters break them: what is in brackets on lines of its own."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Iterator

from hookcheck.repro.editing import written

WIDTH = 100
STRING = re.compile(r'"[^"]*"')
CHAINED = r"(?<=\))\.\w+\("
"""Where a method of what a call gives is called."""

CLOSES = re.compile(r"(?:\.\w+\(\))?[)\]}:,]*")
"""What may stand behind the bracket that a line is broken in: a method of what it gives, without arguments."""


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
        return textwrap.wrap(comment, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}# ")
    if comment and len(indent) + len(code) <= WIDTH:
        return [*above, indent + code]
    apart_lines = _several(code)
    if apart_lines:
        return [*above, *(piece for part in apart_lines for piece in _line(f"{indent}{part}"))]
    closing = [(start, end) for start, end in pairs if CLOSES.fullmatch(code[end + 1 :]) and start < end - 1]
    opened = re.match(r"(?:if|elif|while|return|[\w, ]+ =) ", code)
    if not closing:
        opened = opened or re.match(r"for .+? in (?=.*:$)", code)
    if opened and not (pairs and CLOSES.fullmatch(code[pairs[0][1] + 1 :]) and pairs[0][0] < len(code) // 2):
        inside, colon = code[opened.end() :].rstrip(":"), ":" if code.endswith(":") else ""
        brackets = [(a - opened.end(), b - opened.end()) for a, b in pairs]
        parts = _split(inside, "if|else", brackets)
        parts = parts if len(parts) > 1 else _split(inside, "or|and", brackets)
        if len(parts) == 1 and any(depth == 0 and place > opened.end() for place, depth in commas):
            parts = [inside]  # what is between its commas
        if len(parts) == 1 and len(indent) + len(inside) + 4 > WIDTH:
            parts = _split(inside, CHAINED, brackets, "")
        lines = [piece for part in parts for piece in _line(f"{indent}    {part}")]
        return [*above, f"{indent}{opened[0]}(", *lines, f"{indent}){colon}"]
    apart = [-1, *(place for place, depth in commas if not depth and not _of_lambda(code, place)), len(code)]
    items = [item for a, b in zip(apart, apart[1:]) if (item := code[a + 1 : b].strip())]
    outside = _outside(code, pairs)
    if len(items) > 1 and not opened and not re.search(r"^(?:with|def|from|import) |\bfor ", STRING.sub("", outside)):
        return [*above, *(piece for item in items for piece in _line(f"{indent}{item},"))]
    if closing and len(indent) + closing[0][0] >= WIDTH:  # what is ahead of it is too long
        closing = [pairs[0], *closing]
    closing = closing or [pair for pair in pairs if pair[1] - pair[0] > WIDTH // 2][:1]
    for start, end in closing:
        inside = code[start + 1 : end]
        head, closed = f"{indent}{code[: start + 1]}", f"{indent}{code[end:]}"
        if len(inside) + len(indent) + 4 <= WIDTH:
            return [*above, head, f"{indent}    {inside}", closed]
        places = [
            start,
            *(
                place
                for place, depth in commas
                if start < place < end and depth == _depth(pairs, start) and not _of_lambda(code, place)
            ),
            end,
        ]
        parts = [code[a + 1 : b].strip() for a, b in zip(places, places[1:])]
        within = [(a - start - 1, b - start - 1) for a, b in pairs if a > start and b < end]
        if " for " in STRING.sub("", _outside(inside, within)):
            parts = _split(inside, "for|if", within)
            lines = [f"{indent}    {part}" for part in parts]
            return [*above, head, *(lines if len(parts) > 1 else _line(lines[0])), closed]
        more = "," if len(parts) > 1 else ""
        lines = [piece for part in filter(None, parts) for piece in _line(f"{indent}    {part}{more}")]
        return [*above, head, *lines, closed]
    words = "for|if" if re.search(r"\bfor ", STRING.sub("", outside)) else "if|else"
    return [*above, *(f"{indent}{part}" for part in _split(code, words, pairs))]  # inside of brackets


def _outside(code: str, pairs: list[tuple[int, int]]) -> str:
    """What is in no pair of brackets."""
    return "".join(c for i, c in enumerate(code) if not any(a < i < b for a, b in pairs))


def _several(code: str) -> list[str]:
    """A statement for each of several names that are given values at once, of which none is read for another."""
    try:
        (statement,) = ast.parse(code).body
    except (SyntaxError, ValueError):  # a part of a statement
        return []
    if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
        return []
    names, values = statement.targets[0], statement.value
    if not isinstance(names, ast.Tuple) or not isinstance(values, ast.Tuple) or len(names.elts) != len(values.elts):
        return []
    read = {node.id for node in ast.walk(values) if isinstance(node, ast.Name)}
    if not all(isinstance(name, ast.Name) and name.id not in read for name in names.elts):
        return []
    return [f"{written(name)} = {written(value)}" for name, value in zip(names.elts, values.elts)]


def _of_lambda(code: str, place: int) -> bool:
    """Whether a comma is between the parameters of a lambda."""
    return any(m.start() < place < m.end() for m in re.finditer(r"\blambda\b[^:]*:", code))


def _split(text: str, words: str, pairs: list[tuple[int, int]], around: str = " ") -> list[str]:
    """The parts of an expression that begin with one of the words, outside of pairs of brackets and of strings."""
    held = [*pairs, *((m.start(), m.end()) for m in STRING.finditer(text))]
    places = [m.start() for m in re.finditer(rf"{around}(?=(?:{words}){around})", text)]
    cuts = [place for place in places if not any(a < place < b for a, b in held)]
    return [text[a:b].strip() for a, b in zip([0, *cuts], [*cuts, len(text)])]


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
