"""Is the corpus curated as its script says? What adds most for its size first, lines that are there kept."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from topology.samples import SAMPLES, plain, twin

from hookcheck.topology.codec import identify
from hookcheck.topology.corpus import read, write
from hookcheck.topology.layers.linear import Linear

LINEAR = plain(Linear(3, 3))
SHARED = twin((("b", "a"),))


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module, on an empty corpus."""
    path = Path(__file__).parents[1] / "conformance" / "draw_corpus.py"
    spec = importlib.util.spec_from_file_location("draw_corpus", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    return module


def test_what_adds_most_for_its_size_goes_first(script: Any) -> None:
    small, large, nothing = LINEAR, SAMPLES["nested sequential"], SHARED
    assert script.cost(small) < script.cost(large)
    assert script.adding({large: {1, 2, 3}, small: {1, 2, 3}, nothing: set()}, 9) == [small]
    assert script.adding({small: {1}, large: {*range(99)}}, 9) == [large]
    assert script.adding({small: {1}, large: {2}}, 1) == [small]


def test_a_pair_of_features_is_worth_a_line(script: Any) -> None:
    again = replace(LINEAR, seed=1)
    assert not script.combinations(again) - script.combinations(LINEAR)
    new = script.combinations(SHARED) - script.combinations(LINEAR)
    assert (("since", "1.7"), ("reuse", "shared module"), ("depth", "2")) in new
    assert script.curated((LINEAR,), [again, SHARED], 2) == [LINEAR, SHARED]
    assert script.curated((LINEAR,), [again, SHARED], 3) == [LINEAR, again, SHARED]
    assert script.curated((LINEAR, again), [SHARED], 1) == [LINEAR, again]


def test_a_step_that_no_file_has_comes_first(script: Any) -> None:
    large = SAMPLES["nested sequential"]
    worth_more = [replace(SAMPLES["recursion"], seed=seed) for seed in range(3)]
    assert script.steps(large) - script.steps(worth_more[0])
    assert script.curated((LINEAR,), [*worth_more, large], 2) == [LINEAR, large]
    assert large not in script.curated((LINEAR,), [*worth_more, large], 2, [large])


def test_drawing_twice_gives_the_same_and_keeps_what_is_there(script: Any, tmp_path: Path) -> None:
    write(tmp_path, "multi-node", [SHARED])
    script.add("multi-node", 5, 40)
    first = read(tmp_path, "multi-node")
    assert first[0] == SHARED
    assert len(first) == 5
    write(tmp_path, "multi-node", [SHARED])
    script.add("multi-node", 5, 40)
    assert [*map(identify, read(tmp_path, "multi-node"))] == [*map(identify, first)]
