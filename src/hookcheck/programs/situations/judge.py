"""Where does torch deviate in a situation? At the first act during which hooks note something else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from hookcheck.contract.finding import Finding
from hookcheck.contract.site import CALL, RAISES, Site
from hookcheck.programs.check import text_of
from hookcheck.programs.logs import difference
from hookcheck.programs.situations.acts import Act, Situation, acts
from hookcheck.programs.situations.axes import CONTEXTS, HOSTS, INPUTS, OPTIMIZERS
from hookcheck.programs.situations.corpus import read
from hookcheck.programs.situations.fitting import LATER
from hookcheck.programs.situations.model import expected
from hookcheck.programs.situations.play import play
from hookcheck.programs.situations.sites import SITES, Release


def since(situation: Situation) -> dict[str, Release]:
    """For each axis the first release that has what is chosen."""
    s = situation
    return {
        "site": SITES[s.site].since,
        "partner": SITES[s.partner].since if s.partner else (1, 7),
        "first": (SITES[s.site].prepends or (1, 7)) if s.first else (1, 7),
        "outer": CONTEXTS[s.outer].since,
        "inner": CONTEXTS[s.inner].since,
        "host": HOSTS[s.host].since,
        "optimizer": OPTIMIZERS[s.optimizer].since,
        "input": INPUTS[s.input].since,
        **{axis: LATER.get(getattr(s, axis), (1, 7)) for axis in ("before", "between", "backward", "call")},
    }


def fitted(situation: Situation, release: Release) -> Situation | None:
    """The situation as a torch can take it: what it lacks is as simple as can be; None where it lacks the site."""
    lacking = {axis for axis, first in since(situation).items() if first > release}
    if "site" in lacking:
        return None
    if "partner" in lacking and situation.trouble == "removes its partner":
        lacking.add("trouble")
    simplest: dict[str, Any] = {f.name: f.default for f in fields(situation) if f.name in lacking}
    return replace(situation, **simplest)


def held(release: Release) -> tuple[Situation, ...]:
    """The situations of the corpus, as a torch can take them."""
    return tuple(dict.fromkeys(filter(None, (fitted(situation, release) for situation in read()))))


def finding(situation: Situation) -> Finding | None:
    """How torch deviates in a situation, of which `hookcheck.repro.situations` writes a script."""
    return deviation(situation, [*acts(situation)])


def deviation(situation: Situation, acts: Sequence[Act]) -> Finding | None:
    """How torch deviates during the first of ``acts`` during which hooks note something else."""
    steps = expected(acts)
    try:
        history = play(situation, acts)
    except Exception as error:
        return Finding(Site(CALL, "setting the situation up"), RAISES, None, text_of(error))
    for (act, entries), observed in zip(steps, history):
        if entries != observed:
            return difference(str(act), entries, observed)
    return None
