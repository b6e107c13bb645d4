"""Does docs/check.md show what its example prints, and name what there is?"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hookcheck.models.check import USUAL
from hookcheck.models.result import VERDICTS
from hookcheck.models.same_under import CONTEXTS
from hookcheck.releases.numbers import release

DOCS = (Path(__file__).parents[2] / "docs" / "check.md").read_text(encoding="utf-8")


@pytest.mark.skipif(release(torch.__version__) < (2, 8), reason="the warning that is shown came with torch 2.8")
def test_the_examples_print_what_is_shown(tmp_path: Path) -> None:
    code, shown, hook_code, received = re.findall(r"```(?:python)?\n(.*?)```", DOCS, re.S)[:4]
    (tmp_path / "model.py").write_text(code + hook_code)
    ran = subprocess.run([sys.executable, "-W", "ignore", "model.py"], cwd=tmp_path, capture_output=True, text=True)
    printed = one_line(ran.stdout.replace(f"{tmp_path}/", "").replace("__main__.", "model."))
    assert printed.startswith(one_line(shown.replace("2.13.0+cpu", torch.__version__)))
    assert printed.endswith(one_line(received))


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_words_and_names_are_those_of_the_code() -> None:
    assert all(f"| `{verdict}` |" in DOCS for verdict in VERDICTS)
    assert all(f"`{name}`" in DOCS for name in (*USUAL, *CONTEXTS) if name != "eager")
