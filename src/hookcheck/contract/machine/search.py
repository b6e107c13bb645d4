"""Which acts, following one another, make torch deviate from the model? Hypothesis draws sequences and shrinks.

A sequence is plain data: so many places, each with an act or none, from which the model leaves out what is not possible
when its turn comes. That draws what a state machine of rules would, and is simpler to shrink: places are emptied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from hookcheck.contract.machine.model import (
    KINDS,
    NETS,
    PARTS,
    Act,
    Backward,
    Copy,
    Entry,
    Fail,
    Forward,
    Grad,
    Register,
    Release,
    Remove,
    Site,
    Train,
    fitted,
    kinds,
    steps,
)
from hookcheck.contract.machine.play import play
from hookcheck.contract.machine.source import source


@dataclass(frozen=True)
class Deviation:
    """The acts, each with what must be noted, of which the last deviates; and what was noted during that."""

    steps: Sequence[tuple[Act, Sequence[Entry]]]
    observed: Sequence[Entry]

    @property
    def gap(self) -> str:
        """How what was noted differs."""
        expected, observed = ([*map(str, log)] for log in (self.steps[-1][1], self.observed))
        if any(entry[0] == "raised" and entry not in self.steps[-1][1] for entry in self.observed):
            return "raised"
        if len(expected) != len(observed):
            return "not fired" if len(observed) < len(expected) else "fired too often"
        return "wrong order" if sorted(expected) == sorted(observed) else "wrong arguments"

    def __repr__(self) -> str:
        """The acts as a script, and what came of the last of them."""
        return f"{source(self.steps)}# observed: {', '.join(map(repr, self.observed)) or 'nothing'}"


def deviation(acts: Sequence[Act]) -> Deviation | None:
    """The first of ``acts`` during which torch deviates from the model, after those before it."""
    expected = steps(acts)
    for at, ((_, entries), observed) in enumerate(zip(expected, play(act for act, _ in expected))):
        if entries != observed:
            return Deviation(expected[: at + 1], observed)
    return None


def sequences(release: Release, going: bool) -> Any:
    """Draws lists of acts for a torch; ``going``: with hooks that remove hooks, and with calls under ``no_grad``."""
    from hypothesis import strategies as st

    nets, numbers = st.sampled_from((*[0] * NETS, 1)), st.integers(1, 4).map(float)
    sites = st.builds(Site, nets, st.sampled_from(PARTS)) | st.none()
    removes = st.none() | st.integers(0, 3) if going else st.none()
    kind, option = st.sampled_from([k for k in KINDS if k in kinds(release)]), st.booleans()
    registers = st.builds(Register, kind, sites, option, option, option, removes).map(partial(fitted, release=release))
    forwards = st.builds(Forward, nets, numbers, st.just(True) | st.booleans() if going else st.just(True))
    backwards = st.builds(Backward, nets, numbers) | st.builds(Grad, nets, numbers)
    copies = st.builds(Copy, nets, st.sampled_from(["deepcopy", "pickle"]))
    others = st.builds(Fail, nets) | st.builds(Train, nets, option)
    removals = st.builds(Remove, st.integers(0, 3))
    act = st.one_of(st.none(), registers, registers, registers, forwards, forwards, backwards, removals, copies, others)
    return st.tuples(*[act] * LONGEST).map(lambda acts: tuple(act for act in acts if act))


LONGEST = 12
"""Acts that a sequence has at most."""


def found(strategy: Any, examples: int) -> Deviation | None:
    """The simplest deviation that sequences from ``strategy`` show, the same in every run with this Hypothesis."""
    from hypothesis import Phase, find, settings
    from hypothesis.errors import NoSuchExample

    drawn = settings(max_examples=examples, database=None, deadline=None, phases=(Phase.generate, Phase.shrink))
    try:
        return deviation(find(strategy, lambda acts: deviation(acts) is not None, settings=drawn, random=Random(0)))
    except NoSuchExample:
        return None
