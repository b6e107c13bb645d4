"""Is each folder for an upstream report whole? Its script is short, its issue holds that very script and what triagers
ask for, and the list names it. And is there such a folder for each fault that torch has and nobody reported?"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.ledger import load
from hookcheck.repro.ablation import compiles
from hookcheck.repro.heading import FAILS, LACKS, ends_with

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

UPSTREAM = Path(__file__).parents[2] / "reports" / "upstream"
FOLDERS = sorted(path for path in UPSTREAM.iterdir() if path.is_dir())
FOLDER = pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
BUG = ("### 🐛 Describe the bug", "**Observed and expected**", "**Releases**", "**Related issues**", "### Versions")
PT2 = (
    "### 🐛 Describe the bug", "**Ablation**", "**Releases**", "**Related issues**", "### Error logs", "### Versions",
)  # fmt: skip
"""What PyTorch's two bug forms ask for, the second one where something is compiled, and what triagers ask for."""


def test_there_are_at_least_eight() -> None:
    assert len(FOLDERS) >= 8


@FOLDER
def test_a_folder(folder: Path) -> None:
    script = (folder / "repro.py").read_text(encoding="utf-8")
    issue = (folder / "issue.md").read_text(encoding="utf-8")
    lines = script.splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 100
    assert script.startswith('# /// script\n# dependencies = ["torch"]\n# ///\n"""')
    assert f"```python\n{script}```\n" in issue
    places = [issue.find(part) for part in (PT2 if compiles(script) else BUG)]
    assert -1 not in places
    assert places == sorted(places)
    assert issue.startswith("# ")
    assert "https://docs.pytorch.org/" in issue
    assert f"| `{folder.name}` |" in (UPSTREAM / "README.md").read_text(encoding="utf-8")


@FOLDER
def test_an_issue_names_the_exit_codes_that_its_script_has(folder: Path) -> None:
    script = (folder / "repro.py").read_text(encoding="utf-8")
    said = (folder / "issue.md").read_text(encoding="utf-8").partition("```python")[0]
    for code, when in ((FAILS, "where its control fails"), (LACKS, "where")):
        assert bool(re.search(rf"\b{code} {when}", said)) is ends_with(script, code)


@FOLDER
def test_a_script_that_cannot_tell_ends_otherwise_than_one_that_shows_the_fault(folder: Path) -> None:
    """An ``assert`` ends with 1, as the fault does, whatever it is that does not hold."""
    script = (folder / "repro.py").read_text(encoding="utf-8")
    assert not [node for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Assert)]
    assert ends_with(script, FAILS), "it has no control"


def test_each_entry_of_the_newest_releases_is_reported_or_has_a_folder_or_says_why_it_needs_none() -> None:
    """By ``entries.toml``: a folder that is removed, a new link and a new entry fail until somebody judges them."""
    table = tomllib.loads((UPSTREAM / "entries.toml").read_text(encoding="utf-8"))
    shown = [id for folder, ids in table["folders"].items() if (UPSTREAM / folder / "repro.py").exists() for id in ids]
    settled = [*shown, *(id for ids in table["none"].values() for id in ids)]
    newest = {e.id: e.link for e in load() if e.torch.contains("2.13.0") or e.torch.contains("2.15.0")}
    links = {id: re.sub(r"https://github.com/pytorch/(\w+)/\w+/(\d+)", r"\1#\2", link) for id, link in newest.items()}
    left = {id for id, link in links.items() if id not in settled and link not in table["reported"]}
    assert left == {*table["unwritten"]}, "search PyTorch's issues, then report it, or say in entries.toml why not"
    assert len(settled) == len({*settled} & {*newest}), "an entry is named twice, or is none of the newest releases"
    assert {*table["reported"]} <= {*links.values()}
