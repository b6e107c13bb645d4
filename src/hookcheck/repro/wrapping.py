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


def _line(line: str, bracketed: bool = False) -> list[str]:
    """The lines that a line becomes; ``bracketed`` says that it is in brackets, where it may end anywhere."""
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
    parts = _delimited(code.rstrip(","), pairs) if bracketed else []
    if len(parts) > 1:
        parts[-1] += "," if code.endswith(",") else ""
        return [*above, *(piece for part in parts for piece in _line(f"{indent}{part}", True))]
    apart_lines = _several(code)
    if apart_lines:
        return [*above, *(piece for part in apart_lines for piece in _line(f"{indent}{part}"))]
    closing = [(start, end) for start, end in pairs if CLOSES.fullmatch(code[end + 1 :]) and start < end - 1]
    opened = re.match(r"(?:if|elif|while|return|[\w, ]+ =) ", code)
    if not closing:
        opened = opened or re.match(r"for .+? in (?=.*:$)", code)
    of_last = opened and closing and _of_last(code, opened.end(), pairs, closing[-1])
    if opened and not of_last and not (pairs and _closes_early(code, pairs[0])):
        inside, colon = code[opened.end() :].rstrip(":"), ":" if code.endswith(":") else ""
        brackets = [(a - opened.end(), b - opened.end()) for a, b in pairs]
        parts = _delimited(inside, brackets)
        if len(parts) == 1 and any(depth == 0 and place > opened.end() for place, depth in commas):
            parts = [inside]  # what is between its commas
        if len(parts) == 1 and len(indent) + len(inside) + 4 > WIDTH:
            parts = _split(inside, CHAINED, brackets, "")
        lines = [piece for part in parts for piece in _line(f"{indent}    {part}", True)]
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
        if len(inside) + len(indent) + 4 <= WIDTH and not _displays(code, start, end, pairs, commas):
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
            parts = _clauses(inside, within)
            lines = [piece for part in parts for piece in _line(f"{indent}    {part}", True)]
            return [*above, head, *lines, closed]
        more = "," if len(parts) > 1 else ""
        lines = [piece for part in filter(None, parts) for piece in _line(f"{indent}    {part}{more}", True)]
        return [*above, head, *lines, closed]
    words = "for|if" if re.search(r"\bfor ", STRING.sub("", outside)) else "if|else"
    return [*above, *(f"{indent}{part}" for part in _split(code, words, pairs))]  # inside of brackets


def _displays(code: str, start: int, end: int, pairs: list[tuple[int, int]], commas: list[tuple[int, int]]) -> bool:
    """Whether a bracket holds the items of a tuple, a list, a set or a dict: each of them has a line of its own."""
    if re.search(r"[\w)\]}\"']$", code[:start]):  # a call, or an item
        return False
    inner = [(a - start - 1, b - start - 1) for a, b in pairs if a > start and b < end]
    if " for " in STRING.sub("", _outside(code[start + 1 : end], inner)):
        return False
    depth = _depth(pairs, start)
    return any(start < place < end and deep == depth and not _of_lambda(code, place) for place, deep in commas)


def _closes_early(code: str, pair: tuple[int, int]) -> bool:
    """Whether the first half of a line opens a bracket that closes at its end."""
    return CLOSES.fullmatch(code[pair[1] + 1 :]) is not None and pair[0] < len(code) // 2


def _of_last(code: str, begin: int, pairs: list[tuple[int, int]], last: tuple[int, int]) -> bool:
    """Whether what a statement gives is one call of what another call gives, and is broken in the brackets of that."""
    value = code[begin:].rstrip(":")
    inner = [(a - begin, b - begin) for a, b in pairs if a >= begin]
    chain = _split(value, CHAINED, inner, "")
    fits = last[1] - begin == len(value) - 1 and last[0] < WIDTH - 4
    return (
        fits
        and len(chain) <= 2
        and inner[0][0] + begin != last[0]
        and len(_delimited(value, inner)) == 1
        and "," not in _outside(value, inner)
    )


def _clauses(text: str, pairs: list[tuple[int, int]]) -> list[str]:
    """The element of a comprehension, and what it is over and under which conditions."""
    element, *rest = _split(text, "for", pairs)
    cut = len(element) + 1
    inner = [(a - cut, b - cut) for a, b in pairs if a > cut]
    return [element, *(_split(" ".join(rest), "for|if", inner) if rest else ())]


def _delimited(text: str, pairs: list[tuple[int, int]]) -> list[str]:
    """The parts of what may end anywhere: of a comprehension, a condition, or an operation, whichever binds least."""
    if re.match(r"for |(?:[\w.]+=|[^(]*: )?lambda\b", text) or "," in STRING.sub("", _outside(text, pairs)):
        return [text]
    if " for " in STRING.sub("", _outside(text, pairs)):
        return _clauses(text, pairs)
    for words in ("if|else", "or|and", "in|not in|is|==|!=|<=?|>=?", r"\+|-", r"\*|/|//|@|%"):
        parts = _split(text, words, pairs)
        if len(parts) > 1:
            return parts
    return [text]


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
