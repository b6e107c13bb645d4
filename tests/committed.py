"""Are the records of this checkout the committed ones? A run of the suite writes its own over them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def _unchanged() -> bool:
    """Whether git knows the records as they lie. Without git nothing tells them apart from the committed ones."""
    try:
        asked = subprocess.run(
            ["git", "status", "--porcelain", "reports/records"], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except OSError:
        return True
    unstaged = (line for line in asked.stdout.splitlines() if line[1] != " ")
    return asked.returncode != 0 or not any(unstaged)


drawn_from_committed_records = pytest.mark.skipif(
    not _unchanged(),
    reason="a run has written its record among the committed ones: `git add reports/records` or `git restore` it",
)
"""For tests that hold a committed file to be what is drawn from the committed records."""
