"""The code of a notebook as one Python file, each line of it where the notebook's own file has it."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

SUFFIX = ".ipynb"
_MAGIC = re.compile(r"^(\s*)(?:[%!?].*|.*\?\s*)$")
_GIVEN = re.compile(r"^(\s*[\w, ]+=)\s*[%!].*$")
_TIMING = ("%%time", "%%timeit", "%%capture", "%%prun")
"""The magics of whole cells that run the cell's Python."""


def code_of(data: bytes) -> bytes:
    """The cells of code, with empty lines for all that is between; what IPython alone knows becomes ``pass``.

    Raises:
        ValueError: it is no notebook, or its code does not stand on lines of its own, as nbformat writes it.
    """
    notebook = json.loads(data)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise ValueError("no notebook of version 4: it has no cells")
    known = notebook.get("metadata", {}).get("language_info", {}).get("name", "python")
    text: list[str] = []
    blocks = _blocks(data.decode().split("\n"))
    for cell in cells:
        lines = cell.get("source") if isinstance(cell, dict) else None
        if not lines:
            continue
        first = next((number for number, held in blocks if held == lines), None)
        if first is None:
            raise ValueError("a notebook whose code does not stand on lines of its own: have Jupyter write it anew")
        if cell.get("cell_type") == "code" and known == "python":
            text += [""] * (first - len(text)) + _python([line.rstrip("\n") for line in lines])
    return ("\n".join(text) + "\n").encode()


def _blocks(lines: list[str]) -> Iterator[tuple[int, list[Any]]]:
    """What stands on the lines of each ``"source": [``, and the number of the first of them, from 0."""
    for number, line in enumerate(lines):
        if line.strip() != '"source": [':
            continue
        held = []
        for item in lines[number + 1 :]:
            if item.strip().startswith("]"):
                break
            held.append(json.loads(item.strip().rstrip(",")))
        yield number + 1, held


def _python(lines: list[str]) -> list[str]:
    """A cell without what only IPython understands."""
    try:
        ast.parse("\n".join(lines))
    except SyntaxError:
        if lines[0].startswith("%%") and not lines[0].startswith(_TIMING):
            return []
        return [_MAGIC.sub(r"\1pass", _GIVEN.sub(r"\1 None", line)) for line in lines]
    return lines
