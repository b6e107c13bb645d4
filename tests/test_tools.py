"""Do the scripts that write to the repository write nothing where they are asked for help, or for what is not there?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def ended(script: str, *arguments: str) -> tuple[int, str]:
    """How a script ends, which would go on for longer than that if it began its work; and what it printed."""
    done = subprocess.run(
        [sys.executable, str(ROOT / script), *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    ["conformance/draw_beside.py", "conformance/covering.py", "docs/draw_tutorials.py"],
)
def test_help_is_all_that_is_given(script: str) -> None:
    if script == "conformance/covering.py":
        pytest.importorskip("allpairspy", reason="what makes covering arrays is missing: pip install allpairspy")
    code, text = ended(script, "--help")
    assert (code, text.startswith("usage: ")) == (0, True)
    code, text = ended(script, "--nothing")
    assert (code, "unrecognized arguments: --nothing" in text) == (2, True)


def test_a_tutorial_that_is_not_there_is_refused() -> None:
    code, text = ended("docs/draw_tutorials.py", "nothing")
    assert code == 2
    assert "there are only README, grad-cam, in-place, source-build" in text
