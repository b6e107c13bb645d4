"""During which act does torch deviate from the model, and which fewer acts show it? Hypothesis shrinks sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hookcheck.contract.finding import Finding
from hookcheck.programs.logs import Entry, difference
from hookcheck.programs.machine.model import Act, CopyAct, ModuleSite, RegisterAct, RemoveAct, steps
from hookcheck.programs.machine.play import play
from hookcheck.programs.machine.source import source


@dataclass(frozen=True)
class DeviatingActs:
    """The acts, each with what must be noted, of which the last deviates; and what was noted during that."""

    steps: Sequence[tuple[Act, Sequence[Entry]]]
    observed: Sequence[Entry]

    @property
    def difference(self) -> Finding:
        """How what was noted differs, at its end: after these acts, as a script."""
        return difference(f"{source(self.steps)}# the last of these acts", self.steps[-1][1], self.observed)


def deviation(acts: Sequence[Act]) -> DeviatingActs | None:
    """The first of ``acts`` during which torch deviates from the model, after those before it."""
    expected = steps(acts)
    for at, ((_, entries), observed) in enumerate(zip(expected, play(act for act, _ in expected))):
        if entries != observed:
            return DeviatingActs(expected[: at + 1], observed)
    return None


def shrunk(shown: DeviatingActs) -> DeviatingActs:
    """The simplest deviation with the same gap among sequences of some of the acts, or of acts with fewer options."""
    from hypothesis import Phase, find, settings
    from hypothesis import strategies as st
    from hypothesis.errors import NoSuchExample

    acts = [act for act, _ in shown.steps]
    # What stands first is simplest; an act as it is stands there several times, so that many are left as they are.
    each = [st.sampled_from((None, *simpler(act), *[act] * 8)) for act in acts]
    some: Any = st.tuples(*each).map(lambda left: deviation(without(acts, left)))
    drawn = settings(max_examples=100, database=None, deadline=None, phases=(Phase.generate, Phase.shrink))
    try:
        smaller: DeviatingActs = find(
            some,
            lambda candidate: candidate is not None and candidate.difference.gap == shown.difference.gap,
            settings=drawn,
            random=Random(0),
        )
        return smaller
    except NoSuchExample:
        return shown


def simpler(act: Act) -> list[Act]:
    """The act with one option less, for each that it has."""
    if not isinstance(act, RegisterAct):
        return []
    less: list[Act] = [replace(act, removes=None), replace(act, prepend=False), replace(act, with_kwargs=False)]
    return [one for one in (*less, replace(act, always_call=False)) if one != act]


def without(acts: Sequence[Act], left: Sequence[Act | None]) -> tuple[Act, ...]:
    """What is ``left`` of ``acts``, hooks and nets by the numbers that they have then.

    What is about a hook that is gone goes too; what is about a copy that is gone is about the net that it was made of.
    """
    hooks: list[int | None] = []
    nets = [0]
    result: list[Act] = []
    for old, act in zip(acts, left):
        if isinstance(old, RegisterAct):
            hooks.append(None if act is None else sum(isinstance(one, RegisterAct) for one in result))
        if isinstance(old, CopyAct):
            nets.append(nets[old.net] if act is None else 1 + sum(isinstance(one, CopyAct) for one in result))
        renumbered = None if act is None else _renumbered(act, hooks, nets)
        if renumbered is not None:
            result.append(renumbered)
    return tuple(result)


def _renumbered(act: Act, hooks: Sequence[int | None], nets: Sequence[int]) -> Act | None:
    if isinstance(act, RemoveAct):
        number = hooks[act.hook]
        return None if number is None else RemoveAct(number)
    if isinstance(act, RegisterAct):
        site = act.site and ModuleSite(nets[act.site.net], act.site.part)
        return replace(act, site=site, removes=None if act.removes is None else hooks[act.removes])
    return replace(act, net=nets[act.net])
