"""Do contexts meet each other, and each class of tensors, in the corpus?"""

from __future__ import annotations

from itertools import combinations, product
from types import ModuleType

import pytest

from hookcheck.suite import conformance_folder
from hookcheck.topology.contexts import MODES, STEPS
from hookcheck.topology.corpus import read
from hookcheck.topology.families import compiled, context
from hookcheck.topology.families.context import APART, OFFERED
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
    refused = {frozenset((a, b)) for a, others, _ in APART for b in others}
    assert due - met == refused


def test_every_mode_is_within_every_mode_in_the_corpus() -> None:
    corpus = read(conformance_folder() / "corpus", "context")
    assert set().union(*map(nesting, corpus)) == {*product(MODES, MODES)}


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
