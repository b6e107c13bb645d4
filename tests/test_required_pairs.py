"""Is it said of every pair of features whether the corpus must have it, and does it have those or give a reason?"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations, combinations_with_replacement

import pytest
from topology.samples import CALLED, V, X, Y, plain

from hookcheck.coverage.axes import axes
from hookcheck.coverage.contexts import contexts_met, refusal
from hookcheck.coverage.members import Member, members
from hookcheck.coverage.pairs import WordPair, covered
from hookcheck.coverage.required import ANOTHER_BACKEND, CHOICES, MAY_BE_MISSING, choice, missing
from hookcheck.coverage.rules import NOT_DRAWN
from hookcheck.coverage.sentences import CHOSEN, chosen, required_and_missing
from hookcheck.suite import conformance_folder
from hookcheck.topology.contexts import CONTEXTS
from hookcheck.topology.families import FAMILIES
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Grad, Topology, Within

AXES = [axis.name for axis in axes()]
LINEAR = plain(Linear(3, 3))
NESTED = replace(LINEAR, main=(Within("one_thread", (Within("autocast", LINEAR.main),)),))
TWICE = replace(LINEAR, main=(Within("autocast", (Within("autocast", LINEAR.main),)),))
BESIDE = replace(
    LINEAR, main=(replace(CALLED, context="vmap"), Grad("g", (Y,), (X,), (V,), context="is_grads_batched"))
)


def test_every_two_axes_are_required_or_not_by_one_choice_and_every_choice_is_of_use() -> None:
    pairs = [*combinations(AXES, 2), ("context", "context")]
    assert {choice(*pair) for pair in pairs} == {*CHOICES}
    assert all(choice(a, b) == choice(b, a) for a, b in pairs)
    assert all(each.why for each in CHOICES)
    assert {pair for pair in pairs if choice(*pair).required} == {
        *(("hook kind", axis) for axis in AXES[1:]),
        *{("context", "context"), ("context", "tensor"), ("grad mode", "None pattern"), ("arity", "None pattern")},
    }


IN_EAGER = WordPair("context", "compile_eager", "tensor", "nested", 3, "")
MISSING = {
    replace(IN_EAGER, word_a="compile_aot_eager", topologies=0, reason=NOT_DRAWN): ANOTHER_BACKEND,
    replace(IN_EAGER, word_a="compile_module_eager", topologies=0, reason=NOT_DRAWN): "",
    WordPair("hook kind", "forward", "depth", "2", 0, NOT_DRAWN): "",
    WordPair("arity", "0 in", "None pattern", "no firing", 0, NOT_DRAWN): MAY_BE_MISSING[0].why,
}
"""Required pairs that are missing, each with the reason."""

OTHERS = (
    IN_EAGER,
    WordPair("context", "vmap", "tensor", "nested", 0, "it cannot be"),
    WordPair("layer group", "linear", "depth", "2", 0, NOT_DRAWN),
)


def test_required_pairs_that_are_missing() -> None:
    assert missing((*OTHERS, *MISSING)) == MISSING
    assert missing(MISSING)[next(iter(MISSING))] == ""  # no other backend has it


def test_what_people_are_shown_of_required_pairs() -> None:
    rows = {row["axes"]: row for row in chosen((*OTHERS, *MISSING))}
    assert len(rows) == len(CHOICES)
    met = rows["context × tensor"]
    assert tuple(met) == CHOSEN
    assert [met[column] for column in CHOSEN[1:5]] == ["yes", "1", "1", "2"]
    assert [rows["layer group × any other"][column] for column in CHOSEN[1:5]] == ["no", "0", "0", "1"]
    assert {*required_and_missing((*OTHERS, *MISSING))} == {
        "",
        "required and missing, without a reason: 2 pairs",
        f"required and missing, {ANOTHER_BACKEND}: 1 pair",
        f"required and missing, {MAY_BE_MISSING[0].why}: 1 pair",
    }


@pytest.mark.parametrize(
    ("topology", "met"),
    [
        (LINEAR, set()),
        (NESTED, {("autocast", "one_thread")}),
        (TWICE, {("autocast", "autocast")}),
        (BESIDE, {("vmap", "is_grads_batched")}),
    ],
)
def test_contexts_that_meet(topology: Topology, met: set[tuple[str, str]]) -> None:
    pairs = {(p.word_a, p.word_b): p for p in contexts_met([Member("context", topology), Member("multi-node", LINEAR)])}
    assert set(pairs) == {*combinations_with_replacement(CONTEXTS, 2)}
    assert {words for words, pair in pairs.items() if pair.topologies} == met
    assert all(pair.topologies in (0, 1) and bool(pair.topologies) != bool(pair.reason) for pair in pairs.values())


def test_why_two_contexts_do_not_meet() -> None:
    assert refusal("dual_level", "dual_level") == "there is one level at a time"
    assert refusal("vjp", "no_grad") == refusal("no_grad", "vjp")
    assert "zeros" in refusal("no_grad", "vjp")
    assert refusal("checkpoint", "vmap") == ""  # the one may be in the other, though not the other way round
    assert "the root" in refusal("compile_module_eager", "vmap")
    assert refusal("autocast", "one_thread") == ""


@pytest.mark.slow
def test_the_corpus_has_what_is_required_or_there_is_a_reason() -> None:
    corpus = [*chain.from_iterable(members(conformance_folder() / "corpus", family) for family in FAMILIES)]
    whys = missing((*covered(corpus), *contexts_met(corpus)))
    assert [pair for pair, why in whys.items() if not why] == []
    assert {*whys.values()} == {ANOTHER_BACKEND, *(rule.why for rule in MAY_BE_MISSING)}
