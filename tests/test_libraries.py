"""Do the hooks of popular libraries receive what docs/libraries.md says? Those that are installed are run."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAUSES
from hookcheck.programs.facts import facts_of
from hookcheck.programs.program import Program

FOLDER = Path(__file__).parents[1]
sys.path.insert(0, str(FOLDER / "benchmarks"))
libraries: Any = import_module("libraries")
sys.path.pop(0)

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
NAMES = [name for name, (library, _) in libraries.MODELS.items() if libraries.there(library)]


@pytest.mark.parametrize("use", libraries.usable(), ids=lambda use: f"{use.library} {use.what} on {use.model}")
def test_hooks_of_a_library_are_called_and_receive_nothing_unknown(use: Any) -> None:
    result = libraries.checked(use)
    assert any(hook.called for hook in result.hooks)
    assert not result.deviations


@pytest.mark.parametrize("name", NAMES)
def test_nothing_new_deviates_on_a_model(name: str) -> None:
    assert not libraries.bare(name).deviations


@pytest.mark.skipif(not libraries.there("torchvision"), reason="the model is torchvision's")
def test_dropout_through_hooks_on_a_vgg16_at_full_size() -> None:
    program = CLAUSES["WN-02"]
    assert isinstance(program, Program)
    facts = facts_of(program, "cpu")
    assert len(facts) == 11
    assert {fact.name: fact.finding for fact in facts if fact.finding} == {}


def test_the_page_tells_of_all() -> None:
    page = (FOLDER / "docs" / "libraries.md").read_text(encoding="utf-8")
    for use in libraries.USES:
        assert f"| {use.library} `{use.what}` | {use.model} |" in page
    assert all(f"| {name} |" in page for name in libraries.MODELS)
