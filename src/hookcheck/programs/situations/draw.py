"""How was the corpus of situations made? A covering array: any two choices that go together meet in a line.

Run ``python -m hookcheck.programs.situations.draw`` to add what choices that are new need; of an empty corpus it makes
a whole one, for which alone it needs allpairspy. What a line need not choose is as simple as it can be, so that few
choices share the blame for what it shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations, product
from typing import Any

from hookcheck.programs.situations import acts
from hookcheck.programs.situations.acts import Situation
from hookcheck.programs.situations.axes import CONTEXTS, HOSTS, INPUTS, OPTIMIZERS
from hookcheck.programs.situations.corpus import read, write
from hookcheck.programs.situations.fitting import why_not
from hookcheck.programs.situations.sites import SITES

PLAIN = Situation("forward of net")
PARTNERS = (
    "forward_pre of net[0]", "forward of all modules", "full_backward of net", "full_backward_pre of all modules",
    "backward of net[0]", "input", "parameter", "post-accumulate of parameter", "accumulating Node", "pack",
    "optimizer's step_pre", "register_state_dict_pre_hook of net", "register_load_state_dict_post_hook of net[0]",
)  # fmt: skip
"""One site for each sort of what calls hooks."""

AXES: dict[str, list[Any]] = {
    "site": [*SITES],
    "partner": ["", *PARTNERS],
    "first": [False, True],
    "trouble": [*acts.TROUBLES],
    "before": [*acts.BEFORE],
    "between": [*acts.BETWEEN],
    "removal": [*acts.REMOVALS],
    "backward": [*acts.BACKWARDS],
    "call": [*acts.CALLS],
    "outer": [*CONTEXTS],
    "inner": [*CONTEXTS],
    "host": [*HOSTS],
    "optimizer": [*OPTIMIZERS],
    "input": [*INPUTS],
}
"""What there is to choose on each axis, the simplest first."""

Pair = tuple[tuple[str, Any], tuple[str, Any]]


def pairs(situation: Situation) -> Iterator[Pair]:
    """Any two choices of a situation."""
    return combinations(((name, getattr(situation, name)) for name in AXES), 2)


def drawn() -> list[Situation]:
    """The situations of a covering array of strength 2: what the library leaves open stands by itself at the end."""
    from allpairspy import AllPairs

    def fits(row: list[Any]) -> bool:
        return not why_not(Situation(**dict(zip(AXES, row))))  # what is not chosen yet is at its simplest

    rows = [Situation(**dict(zip(AXES, row))) for row in AllPairs([*AXES.values()], filter_func=fits)]
    return [*rows, *packed(missing(rows))]


def packed(left: Iterable[Pair]) -> list[Situation]:
    """Few situations in which all pairs of ``left`` meet: each goes into the first that it does not contradict."""
    rows: list[dict[str, Any]] = []
    for pair in left:
        for row in rows:
            fuller = {**row, **dict(pair)}
            if {**fuller, **row} == fuller and not why_not(replace(PLAIN, **fuller)):
                row.update(pair)
                break
        else:
            rows.append(dict(pair))
    return [replace(PLAIN, **row) for row in rows]


def missing(situations: Iterable[Situation]) -> list[Pair]:
    """Any two choices that go together, but meet in none of ``situations``."""
    covered = {pair for situation in situations for pair in pairs(situation)}
    axes = combinations(AXES.items(), 2)
    each = (
        ((a, first), (b, second)) for (a, firsts), (b, seconds) in axes for first, second in product(firsts, seconds)
    )
    return [pair for pair in each if pair not in covered and not why_not(replace(PLAIN, **dict(pair)))]


def simplified(situations: Iterable[Situation]) -> list[Situation]:
    """Situations that cover the same pairs, each choice at its simplest where others cover what it covers."""
    result = [*situations]
    counts = Counter(pair for situation in result for pair in pairs(situation))
    for name, (simplest, *_) in [*AXES.items()][1:]:
        for at, situation in enumerate(result):
            chosen = (name, getattr(situation, name))
            simpler = replace(situation, **{name: simplest})
            alone = any(counts[pair] == 1 for pair in pairs(situation) if chosen in pair)
            if simpler != situation and not alone and not why_not(simpler):
                counts.subtract(pairs(situation))
                counts.update(pairs(simpler))
                result[at] = simpler
    return [*dict.fromkeys(result)]


if __name__ == "__main__":
    known = read()
    write([*known, *packed(missing(known))] if known else simplified(drawn()))
