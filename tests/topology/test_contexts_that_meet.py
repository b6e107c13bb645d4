"""Do contexts meet each other, and each class of tensors, in the corpus?"""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product
from types import ModuleType

import pytest

from hookcheck.coverage.contexts import refusal
from hookcheck.suite import conformance_folder
from hookcheck.topology.contexts import CONTEXTS, MODES, STEPS
from hookcheck.topology.corpus import read
from hookcheck.topology.families import compiled, context
from hookcheck.topology.families.context import APART, NOT_WITHIN, OFFERED, PLACES, apart
from hookcheck.topology.families.tensors_in_contexts import refused
from hookcheck.topology.model import Topology, inside, nesting, tensor_classes
from hookcheck.topology.tensors import TENSORS

from .sampling import drawn


def chosen(topology: Topology) -> set[str]:
    """The contexts that were chosen: with enable_grad comes a no_grad around it."""
    names = set(inside(topology))
    return names - {"no_grad"} if "enable_grad" in names else names


def test_contexts_of_different_places_meet_in_the_corpus() -> None:
    """Any two of them, in one network or another: those that refuse each other aside."""
    corpus = read(conformance_folder() / "corpus", "context")
    met = {frozenset(pair) for t in corpus for pair in combinations(chosen(t), 2)}
    places = combinations(OFFERED.values(), 2)
    due = {frozenset((a, b)) for these, those in places for a in these for b in those}
    refused = {frozenset((a, b)) for a, others, _ in APART for b in others if a != b}
    assert due - met == refused


@pytest.mark.parametrize("place", PLACES)
def test_contexts_of_one_place_nest_in_the_corpus(place: str) -> None:
    """Any two of them, each within itself too, in one order or the other, but for those of which neither may be in the
    other."""
    nested = set().union(*map(nesting, read(conformance_folder() / "corpus", "context")))
    due = {*combinations_with_replacement(OFFERED[place], 2)}
    missing = {(a, b) for a, b in due if nested.isdisjoint({(a, b), (b, a)})}
    assert missing == {(a, b) for a, b in due if all(apart({place: order}) for order in ((a, b), (b, a)))}


def test_any_two_contexts_meet_in_the_corpus_or_there_is_a_reason() -> None:
    """Two of one place nest; others are both around something. Those that compile, by one backend or another, are
    within the others."""
    corpus = [t for family in ("context", "compiled") for t in read(conformance_folder() / "corpus", family)]
    met = {compiled.pair(*names) for t in corpus for names in (*combinations(inside(t), 2), *nesting(t))}
    pairs = {*combinations_with_replacement(CONTEXTS, 2)}
    assert {(a, b) for a, b in pairs if compiled.pair(a, b) not in met and not refusal(a, b)} == set()


@pytest.mark.slow
def test_no_network_has_a_context_in_one_that_refuses_it() -> None:
    for family, name, table in ((context, "context", NOT_WITHIN), (compiled, "compiled", compiled.NOT_AROUND)):
        networks = (*read(conformance_folder() / "corpus", name), *drawn(family.topologies))
        refused = {pair for outer, inner, _ in table for pair in product(outer, inner)}
        assert refused.isdisjoint(set().union(*map(nesting, networks)))
        assert all(why for _, _, why in table)


def test_every_mode_is_within_every_mode_in_the_corpus() -> None:
    corpus = read(conformance_folder() / "corpus", "context")
    assert {*product(MODES, MODES)} <= set().union(*map(nesting, corpus))


def test_every_class_of_tensors_is_in_contexts_in_the_corpus_and_every_context_around_one() -> None:
    """Those aside that only tensors of no class are given: the grad modes of steps."""
    corpus = [t for t in read(conformance_folder() / "corpus", "context") if tensor_classes(t)]
    assert {name for t in corpus for name in tensor_classes(t)} == {*TENSORS}
    assert {name for t in corpus for name in inside(t)} == {name for names in OFFERED.values() for name in names} - {
        *OFFERED[STEPS]
    }


@pytest.mark.parametrize(("family", "name"), [(context, "context"), (compiled, "compiled")])
def test_no_network_is_in_a_context_that_refuses_its_tensors(family: ModuleType, name: str) -> None:
    classed = (*read(conformance_folder() / "corpus", name), *drawn(family.topologies))
    assert any(tensor_classes(t) for t in classed)
    assert not any(refused(t, within) for t in classed for within in inside(t))
