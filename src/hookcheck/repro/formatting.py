"""Scripts as ruff has them, the formatter and linter of PyTorch's own code."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import textwrap
import tokenize
from collections.abc import Iterator
from functools import lru_cache

from ruff import find_ruff_bin

from hookcheck.repro.editing import replaced, source, start

WIDTH = 100
FIXED = "I,PLR0402"
"""The rules that ruff mends: of imports, which it merges and sorts."""

PRIMARY = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
"""What needs no brackets where something of it is taken."""


def formatted(text: str) -> str:
    """The text with what formatters do not see to: at most one blank line where they leave two, none where a function
    begins, no brackets that are left of what was in them, and each comment that makes its line too long above it.

    Raises:
        subprocess.CalledProcessError: it is not Python.
    """
    text = _laid_out(_commented_above(re.sub(r"\n{3,}", "\n\n", text)))
    return _laid_out(_commented_above(_unbracketed(_begun_at_once(text))))


@lru_cache(maxsize=1024)
def _laid_out(text: str) -> str:
    sorted_imports = _ruff("check", "--fix-only", "--select", FIXED, text=text)
    return _ruff("format", "--config", "format.skip-magic-trailing-comma=true", text=sorted_imports)


def _ruff(*command: str, text: str) -> str:
    whole = [find_ruff_bin(), *command, "--isolated", "--quiet", "--line-length", str(WIDTH), "-"]
    return subprocess.run(whole, input=text, capture_output=True, text=True, encoding="utf-8", check=True).stdout


def _begun_at_once(text: str) -> str:
    """The text without blank lines between the head of a block and what is in it."""
    blank: set[int] = set()
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type != tokenize.COMMENT]
    opened = False
    for before, token in zip(tokens, tokens[1:]):
        if token.type == tokenize.NL and opened and not token.line.strip():
            blank.add(token.start[0])
        elif token.type != tokenize.NL:
            opened = token.type == tokenize.NEWLINE and before.string == ":"
    return "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in blank)


def _unbracketed(text: str) -> str:
    """The text without brackets around what needs none, where something of it is taken: ``(y).grad``."""
    for node in _outside_patterns(ast.parse(text)):
        of = node.value if isinstance(node, (ast.Attribute, ast.Subscript)) else getattr(node, "func", None)
        if isinstance(node, ast.expr) and isinstance(of, PRIMARY) and start(node) < start(of):
            whole, inner = source(text, node), source(text, of)
            if whole.startswith(f"({inner})") and "\n" not in inner:
                return _unbracketed(replaced(text, node, inner + whole[len(f"({inner})") :]))
    return text


def _outside_patterns(node: ast.AST) -> Iterator[ast.AST]:
    """All that is in a tree; of what stands in an f-string older Pythons do not know the place."""
    yield node
    for part in ast.iter_child_nodes(node):
        if not isinstance(part, ast.JoinedStr):
            yield from _outside_patterns(part)


def _commented_above(text: str) -> str:
    """The text, no line of which is too long for its comment."""
    return "\n".join(_with_comments_above(text))


def _with_comments_above(text: str) -> Iterator[str]:
    comments = {
        token.start[0]: token.start[1]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) <= WIDTH or number not in comments:
            yield line
            continue
        code, comment = line[: comments[number]].rstrip(), line[comments[number] :]
        indent = " " * (len(line) - len(line.lstrip()))
        yield from textwrap.wrap(comment, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}# ")
        yield from [code] if code else []
