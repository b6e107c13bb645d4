"""Is it seen when a class of tensors loses hooks: given to a module, a parameter of one, given by one, or a leaf?"""

from __future__ import annotations

from contextlib import AbstractContextManager

import pytest
from faults.samples import deviations, sound
from faults.tensors import OF_CLASS, past_leaves, past_modules

from hookcheck.coverage.members import Member, members
from hookcheck.hooks.siblings import SIBLINGS
from hookcheck.probe.run import unavailable
from hookcheck.suite import conformance_folder
from hookcheck.topology.families.tensors_in_contexts import GIVEN, MADE, PLACES, READ, place_in
from hookcheck.topology.model import tensor_classes
from hookcheck.topology.tensors import TENSORS

LINES = [each for family in ("tensor-class", "context") for each in members(conformance_folder() / "corpus", family)]
"""The networks alone, then those in contexts, each with the hook kinds that it is run with."""

(FORWARDS,) = (kinds for kinds in SIBLINGS if "forward" in kinds)
"""The hook kinds of which each network is run with one."""


def lines(word: str, place: str) -> list[Member]:
    """The networks that have such a tensor there."""
    those = (m for m in LINES if tensor_classes(m.topology) == (word,) and place_in(m.topology) == place)
    return [member for member in those if not unavailable(member.topology, None)]


def seen(those: list[Member], kinds: tuple[str, ...], fault: AbstractContextManager[None]) -> bool:
    """Whether the fault changes what deviates on any of the networks with one of the kinds, if it is run with that."""
    cases = [(member.topology, kind) for member in those for kind in kinds if kind in member.kinds]
    before = [sound(*case) for case in cases]
    with fault:
        return any(deviations(*case) != was for case, was in zip(cases, before))


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
    assert seen(lines(word, place), FORWARDS, past_modules(OF_CLASS[word]))


HOOKS_OF_LEAVES = {
    "tensor": "register_hook",
    "post_accumulate": "register_post_accumulate_grad_hook",
}
HOOKS_OF_RESULTS = {"output_tensor": "register_hook", "output_retain_grad": "retain_grad"}
"""The methods that register them."""


@pytest.mark.parametrize(("word", "place"), [each for each in EVERY if each[1] != MADE])
@pytest.mark.parametrize("kind", HOOKS_OF_LEAVES)
def test_a_class_that_loses_the_hooks_of_leaves_is_seen(kind: str, word: str, place: str) -> None:
    if TENSORS[word].constant:
        return
    those = [m for m in lines(word, place) if place != GIVEN or m.topology.inputs[0].requires_grad]
    assert seen(those, (kind,), past_leaves(HOOKS_OF_LEAVES[kind])(OF_CLASS[word]))


@pytest.mark.parametrize("word", [word for word, place in EVERY if place == MADE and not TENSORS[word].constant])
@pytest.mark.parametrize("kind", HOOKS_OF_RESULTS)
def test_a_class_that_loses_the_hooks_of_results_is_seen(kind: str, word: str) -> None:
    fault = past_leaves(HOOKS_OF_RESULTS[kind])(OF_CLASS[word])
    assert seen(lines(word, MADE), (kind,), fault)
