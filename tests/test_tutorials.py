"""Is what the tutorials show what one sees?"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
import torch
from tests.committed import drawn_from_committed_records

ROOT = Path(__file__).parents[1]
PAGES = sorted(path for path in (ROOT / "docs" / "tutorials").glob("*.md") if path.name != "README.md")


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw_tutorials", ROOT / "docs" / "draw_tutorials.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@drawn_from_committed_records
@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="drawn with torch 2.13")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_outputs_are_those_of_today(page: Path, drawing: ModuleType) -> None:
    text = page.read_text(encoding="utf-8")
    assert drawing.drawn(text, drawing.environment_of(page)) == text, "python docs/draw_tutorials.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_output_is_there(page: Path) -> None:
    blocks = re.findall(r"```console\n\$ [^\n]*\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    assert blocks
    assert all(blocks)


def test_every_tutorial_is_listed() -> None:
    index = (ROOT / "docs" / "tutorials" / "README.md").read_text(encoding="utf-8")
    assert {f"{path.name}" for path in PAGES} == set(re.findall(r"\((.*?\.md)\)", index))
