"""What does the script of a program need besides torch? Nothing."""

from __future__ import annotations

import ast
import re
import sys
from typing import Any

import pytest

from hookcheck.errors import HookcheckError
from hookcheck.repro.program import program_script

from .cases import PROGRAMS, SCRIPTED


def test_few_have_no_script() -> None:
    """That all others have one, `test_stands_alone` shows."""
    for id in PROGRAMS.keys() - {p.id for p in SCRIPTED}:
        with pytest.raises(HookcheckError, match=f"^no script can be written yet for program {id}: it needs more than"):
            program_script(PROGRAMS[id])


FIRST_OF_CHAPTERS = {program.chapter: program.id for program in reversed(SCRIPTED)}.values()


@pytest.mark.parametrize(
    "id", [pytest.param(p.id, marks=() if p.id in FIRST_OF_CHAPTERS else pytest.mark.slow) for p in SCRIPTED]
)
def test_stands_alone(id: str) -> None:
    text = program_script(PROGRAMS[id])
    tree = ast.parse(text)
    compile(tree, id, "exec")
    assert "hookcheck" not in text
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert name.partition(".")[0] in {"torch", "__future__", *_standard_library()}
    assert "\n\n\n\n" not in text
    assert all(line == line.rstrip() for line in text.split("\n"))
    assert not re.search(r"(?m)^ *(\w+) = \1$", text)


def _standard_library() -> frozenset[str]:
    names: Any = getattr(sys, "stdlib_module_names", None)  # since Python 3.10
    return frozenset(names or sys.modules)
