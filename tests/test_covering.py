"""Do the lines of the covering array have each class of tensors in each context that it may be in, and few others?"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from topology.samples import SAMPLES

from hookcheck.topology.contexts import ASKING, CALLER, RUN
from hookcheck.topology.corpus import read
from hookcheck.topology.families.tensors_in_contexts import GIVEN, MADE, PARAMETER, READ, place_in
from hookcheck.topology.model import inside, tensor_words


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module, with few candidates and few choices."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "conformance"))
    covering: Any = importlib.import_module("covering")
    monkeypatch.setattr(covering, "CANDIDATES", 20)
    for cached in (covering.candidates, covering.fits):
        cached.cache_clear()
    columns = (("", "detect_anomaly", "one_thread"), ("",), ("",), ("", "thread", "vmap"))
    few = covering.Array(("sparse COO", "parameter", "sparse gradient"), columns, covering.in_contexts)
    ways = (("", "compiled_autograd"), ("", "compiler_disable"), ("", "compile_eager", "after_compile"))
    compiled = covering.Array(("wrapper", "quantised"), ways, covering.in_way)
    monkeypatch.setattr(covering, "ARRAYS", {"context": few, "compiled": compiled})
    return covering


def reached(rows: list[tuple[str, ...]]) -> set[tuple[str, str]]:
    return {(row[0], name) for row in rows for name in row[2:] if name}


def test_each_class_meets_each_context_that_does_not_refuse_it(script: Any) -> None:
    assert reached(script.missing("context", [])) == {
        ("sparse COO", "one_thread"), ("sparse COO", "thread"),
        ("parameter", "detect_anomaly"), ("parameter", "one_thread"), ("parameter", "thread"), ("parameter", "vmap"),
        ("sparse gradient", "detect_anomaly"), ("sparse gradient", "one_thread"), ("sparse gradient", "thread"),
        ("sparse gradient", "vmap"),
    }  # fmt: skip
    assert reached(script.missing("compiled", [])) == {
        ("wrapper", "compiler_disable"), ("wrapper", "compile_eager"), ("wrapper", "after_compile"),
        ("quantised", "compiler_disable"), ("quantised", "compile_eager"), ("quantised", "after_compile"),
        ("quantised", "compiled_autograd"),
    }  # fmt: skip


@pytest.mark.parametrize("family", ["context", "compiled"])
def test_what_is_known_is_not_missing(script: Any, family: str) -> None:
    rows = script.missing(family, [])
    assert script.missing(family, rows) == []
    again = script.missing(family, rows[1:])
    assert len(again) == 1
    covered = {pair for row in (*again, *rows[1:]) for pair in script.pairs(family, row)}
    assert covered >= {pair for row in rows for pair in script.pairs(family, row)}


def test_where_both_count_each_class_that_no_layer_takes_is_a_parameter_in_each_context(
    script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = (("", "default_device", "one_thread"), ("",), ("",), ("", "thread", "replica"))
    words = ("sparse COO", "quantised", "negative view")
    monkeypatch.setitem(script.ARRAYS, "context", script.Array(words, columns, script.in_contexts, both=True))
    script.fits.cache_clear()
    rows = script.missing("context", [])
    assert {(row[0], name) for row in rows if row[1] == READ for name in row[2:] if name} == {
        ("sparse COO", "default_device"), ("sparse COO", "one_thread"), ("sparse COO", "thread"),
        ("quantised", "default_device"), ("quantised", "one_thread"), ("quantised", "thread"), ("quantised", "replica"),
    }  # fmt: skip
    assert {row[:2] for row in rows if row[0] == "negative view"} == {
        ("negative view", place) for place in (GIVEN, MADE, PARAMETER)
    }


@pytest.mark.parametrize("family", ["context", "compiled"])
def test_a_network_makes_the_choices_of_its_row(script: Any, family: str) -> None:
    for row in script.missing(family, []):
        topology = script.network(family, row)
        assert (*tensor_words(topology), place_in(topology)) == row[:2]
        assert {*inside(topology)} == {name for name in row[2:] if name}
        assert row in script.rows_of(family, topology)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "kind"),
    [("context", "nested"), ("context", "featured"), ("compiled", "around_compiled"), ("compiled", "graphs")],
)
def test_the_corpus_has_what_is_to_meet(script: Any, family: str, kind: str) -> None:
    """Contexts in each other, features of networks in contexts, what compiles in others, larger graphs; a part of it is
    missing where its lines are."""
    lines = read(script.FOLDER, family)
    assert [*getattr(script, kind)(lines)] == []
    assert [*getattr(script, kind)([t for t in lines if len(inside(t)) < 2])]


def test_a_plain_network_makes_no_row(script: Any) -> None:
    assert [*script.rows_of("context", SAMPLES["nested sequential"])] == []


def test_what_does_not_go_together(script: Any) -> None:
    assert script.fits("context", ("sparse COO", "given", "one_thread", "", "", "thread"))
    assert not script.fits("context", ("sparse COO", "given", "detect_anomaly"))
    assert not script.fits("context", ("parameter", "made", "one_thread", "", "", ""))  # nothing makes a leaf
    assert script.fits("compiled", ("quantised", "given", "", "compiler_disable", "compile_eager"))
    assert not script.fits("compiled", ("quantised", "given", "", "compiler_disable", ""))
    assert not script.fits("compiled", ("quantised", "given", "compiled_autograd", "", "compile_eager"))
    assert script.context.apart({ASKING: ("is_grads_batched",), CALLER: ("dtensor",)})
    assert not script.context.apart({ASKING: ("is_grads_batched",), CALLER: ("thread",)})


def test_a_row_is_without_what_others_have(script: Any) -> None:
    full, spare = ("parameter", "made", "one_thread", "", "", "thread"), ("parameter", "given", "", "", "", "thread")
    assert script.simplified("context", [full], [spare]) == [("parameter", "made", "one_thread", "", "", "thread")]
    of_two = ("sparse COO", "made", "one_thread", "", "", "thread")
    known = [("sparse COO", "given", "", "", "", "thread"), ("parameter", "made", "", "", "", "thread")]
    assert script.simplified("context", [of_two], known) == [("sparse COO", "made", "one_thread", "", "", "")]
    assert {RUN, CALLER} == {"run", "caller"}
