"""Is each folder for an upstream report whole? Its script is short, its issue holds that very script and what triagers
ask for, and the list names it."""

from __future__ import annotations

from pathlib import Path

import pytest

UPSTREAM = Path(__file__).parents[2] / "reports" / "upstream"
FOLDERS = sorted(path for path in UPSTREAM.iterdir() if path.is_dir())
PARTS = ("### 🐛 Describe the bug", "**Observed and expected**", "**Releases**", "**Related issues**", "### Versions")


def test_there_are_at_least_eight() -> None:
    assert len(FOLDERS) >= 8


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_folder(folder: Path) -> None:
    script = (folder / "repro.py").read_text(encoding="utf-8")
    issue = (folder / "issue.md").read_text(encoding="utf-8")
    lines = [line for line in script.splitlines() if not line.startswith("# https://")]
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 100
    assert script.startswith('# /// script\n# dependencies = ["torch"]\n# ///\n"""')
    assert f"```python\n{script}```\n" in issue
    places = [issue.find(part) for part in PARTS]
    assert -1 not in places
    assert places == sorted(places)
    assert issue.startswith("# ")
    assert "https://docs.pytorch.org/" in issue
    assert f"| `{folder.name}` |" in (UPSTREAM / "README.md").read_text(encoding="utf-8")
