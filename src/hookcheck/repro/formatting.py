"""Scripts as ruff has them, the formatter and linter of PyTorch's own code."""

from __future__ import annotations

import io
import re
import subprocess
import textwrap
import tokenize
from collections.abc import Iterator
from functools import lru_cache

from ruff import find_ruff_bin

WIDTH = 100
FIXED = "I,PLR0402"
"""The rules that ruff mends: of imports, which it merges and sorts."""


def formatted(text: str) -> str:
    """The text with at most one blank line where a formatter leaves two, and each comment that makes its line too long
    above it, which formatters do not see to.

    Raises:
        subprocess.CalledProcessError: it is not Python.
    """
    text = _laid_out(_commented_above(re.sub(r"\n{3,}", "\n\n", text)))
    return _laid_out(_commented_above(text))


@lru_cache(maxsize=1024)
def _laid_out(text: str) -> str:
    sorted_imports = _ruff("check", "--fix-only", "--select", FIXED, text=text)
    return _ruff("format", "--config", "format.skip-magic-trailing-comma=true", text=sorted_imports)


def _ruff(*command: str, text: str) -> str:
    whole = [find_ruff_bin(), *command, "--isolated", "--quiet", "--line-length", str(WIDTH), "-"]
    return subprocess.run(whole, input=text, capture_output=True, text=True, encoding="utf-8", check=True).stdout


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
