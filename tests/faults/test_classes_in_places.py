"""Is it seen when a class of tensors loses hooks: given to a module, a parameter of one, given by one, or a leaf?"""

from __future__ import annotations

from contextlib import AbstractContextManager

import pytest
from faults.samples import deviations, sound
from faults.tensors import OF_CLASS, past_leaves, past_modules

from hookcheck.probe.run import unavailable
from hookcheck.suite import conformance_folder
from hookcheck.topology.corpus import read
from hookcheck.topology.families.tensors_in_contexts import GIVEN, MADE, PLACES, READ, place_in
from hookcheck.topology.model import Topology, tensor_classes
from hookcheck.topology.tensors import TENSORS

LINES = [t for family in ("tensor-class", "context") for t in read(conformance_folder() / "corpus", family)]
"""The networks alone, then those in contexts."""


def lines(word: str, place: str) -> list[Topology]:
    """The networks that have such a tensor there."""
    those = (t for t in LINES if tensor_classes(t) == (word,) and place_in(t) == place)
    return [t for t in those if not unavailable(t, None)]


def seen(topologies: list[Topology], kind: str, fault: AbstractContextManager[None]) -> bool:
    """Whether the fault changes what deviates on any of the networks."""
    before = [sound(topology, kind) for topology in topologies]
    with fault:
        return any(deviations(topology, kind) != was for topology, was in zip(topologies, before))


def places(word: str) -> list[str]:
    """Where tensors of the class may be."""
    each = TENSORS[word]
    parameter = [] if word == "parameter" else [place for place in PLACES[2:] if (place == READ) != each.in_a_layer]
    return [GIVEN, *([] if each.leaf else [MADE]), *parameter]


EVERY = [(word, place) for word in TENSORS for place in places(word)]


@pytest.mark.parametrize(
    ("word", "place"),
    [pytest.param(*each, marks=() if i % 4 == 0 else pytest.mark.slow) for i, each in enumerate(EVERY)],
)
def test_a_class_that_loses_the_hooks_of_modules_is_seen_wherever_it_is(word: str, place: str) -> None:
    topologies = lines(word, place)
    assert topologies
    assert seen(topologies, "forward", past_modules(OF_CLASS[word]))


@pytest.mark.parametrize(("word", "place"), [each for each in EVERY if each[1] != MADE])
@pytest.mark.parametrize(
    ("kind", "method"), [("tensor", "register_hook"), ("post_accumulate", "register_post_accumulate_grad_hook")]
)
def test_a_class_that_loses_the_hooks_of_leaves_is_seen(kind: str, method: str, word: str, place: str) -> None:
    topologies = [t for t in lines(word, place) if place != GIVEN or t.inputs[0].requires_grad]
    if TENSORS[word].constant:
        return
    assert topologies
    assert seen(topologies, kind, past_leaves(method)(OF_CLASS[word]))
