"""How was the corpus of situations made? A covering array: any two choices that go together meet in a line.

So do three of those that an error needs most: the lane of a hook, what it does, and what it does it in.

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
from hookcheck.programs.situations.sites import BY_CLAUSE, LANES, SITES

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

GROUPS = {
    "lane": LANES,
    "clause": {clause: [name for lane in lanes for name in LANES[lane]] for clause, lanes in BY_CLAUSE.items()},
}
"""The sites by lane, and by the clause that speaks of them."""

THREES = (
    ("lane", "trouble", "outer"), ("lane", "trouble", "host"), ("lane", "trouble", "call"),
    ("lane", "trouble", "removal"), ("lane", "trouble", "first"),
)  # fmt: skip
"""The axes of which any three choices that go together meet."""

FEW = 5
"""So many choices may share the blame for what a situation shows that took up some later."""

Choices = tuple[tuple[str, Any], ...]


def words(axis: str) -> list[Any]:
    """What there is to choose on an axis, or the groups of sites."""
    return [*GROUPS.get(axis, AXES.get(axis, ()))]


def chosen(situation: Situation, names: Iterable[str]) -> Choices:
    """What a situation chooses on some axes."""
    return tuple((name, _chosen(situation, name)) for name in names)


def _chosen(situation: Situation, axis: str) -> Any:
    if axis in GROUPS:
        return next(word for word, sites in GROUPS[axis].items() if situation.site in sites)
    return getattr(situation, axis)


def ways(choices: Choices) -> list[Choices]:
    """The choices, on each site of the group that they name, and beside each partner where they need one."""
    there = dict(choices)
    for group in GROUPS.keys() & there.keys():
        others = [choice for choice in choices if choice[0] != group]
        return [way for name in GROUPS[group][there[group]] for way in ways((("site", name), *others))]
    if there.get("trouble") == "removes its partner" and "partner" not in there:
        return [(("partner", name), *choices) for name in PARTNERS]
    return [choices]


def why_none(choices: Choices) -> str:
    """Why no situation makes the choices: the first reason on the first of the sites; empty if one can."""
    reasons = [why_not(replace(PLAIN, **dict(each))) for each in ways(choices)]
    return reasons[0] if all(reasons) else ""


def pairs(situation: Situation) -> Iterator[Choices]:
    """Any two choices of a situation."""
    return combinations(chosen(situation, AXES), 2)


def drawn() -> list[Situation]:
    """The situations of a covering array of strength 2: what the library leaves open stands by itself at the end."""
    from allpairspy import AllPairs

    def fits(row: list[Any]) -> bool:
        return not why_not(Situation(**dict(zip(AXES, row))))  # what is not chosen yet is at its simplest

    rows = [Situation(**dict(zip(AXES, row))) for row in AllPairs([*AXES.values()], filter_func=fits)]
    return [*rows, *packed(missing(rows))]


def packed(left: Iterable[Choices]) -> list[Situation]:
    """Few situations in which all that is in ``left`` meets: each goes into the first that it does not contradict."""
    rows: list[dict[str, Any]] = []
    for choices in placed(left):
        for row in rows:
            fuller = {**row, **dict(choices)}
            if {**fuller, **row} == fuller and not why_not(replace(PLAIN, **fuller)):
                row.update(choices)
                break
        else:
            rows.append(dict(choices))
    return [replace(PLAIN, **row) for row in rows]


def missing(situations: Iterable[Situation]) -> list[Choices]:
    """Any two choices that go together, but meet in none of ``situations``."""
    covered = {pair for situation in situations for pair in pairs(situation)}
    axes = combinations(AXES.items(), 2)
    each = (
        ((a, first), (b, second)) for (a, firsts), (b, seconds) in axes for first, second in product(firsts, seconds)
    )
    return [pair for pair in each if pair not in covered and not why_none(pair)]


def missing_threes(situations: Iterable[Situation]) -> list[Choices]:
    """Any three choices on the axes of `THREES` that go together, but meet in none of ``situations``."""
    covered = {threes for situation in situations for threes in _threes(situation)}
    each = (tuple(zip(names, choices)) for names in THREES for choices in product(*map(words, names)))
    return [choices for choices in each if choices not in covered and not why_none(choices)]


def placed(left: Iterable[Choices]) -> list[Choices]:
    """The choices, each in one of its `ways`, these in turn."""
    result: list[Choices] = []
    for at, choices in enumerate(left):
        fitting = [each for each in ways(choices) if not why_not(replace(PLAIN, **dict(each)))]
        result.append(fitting[at % len(fitting)])
    return result


def absorbed(situations: Iterable[Situation], left: Iterable[Choices]) -> list[Situation]:
    """Situations in which what is in ``left`` meets as well, as far as there are such that need not be as simple.

    A choice at its simplest may go where all that it meets meets elsewhere too. The simplest situations come first,
    those that have `FEW` choices are left alone.
    """
    result = [*situations]
    counts = Counter(met for situation in result for met in _all_met(situation))
    for choices in left:
        if counts[choices]:
            continue  # what met something else brought it along
        for at in sorted(range(len(result)), key=lambda at: _size(result[at])):
            fuller = _fuller(result[at], choices)
            if fuller is None or _size(fuller) > FEW or why_not(fuller):
                continue
            lost = Counter(_all_met(result[at]))
            lost.subtract(_all_met(fuller))
            if all(counts[met] > times for met, times in lost.items() if times > 0):
                counts.subtract(lost)
                result[at] = fuller
                break
    return result


def _size(situation: Situation) -> int:
    """How many choices of a situation are not at their simplest."""
    return sum(getattr(situation, name) != simplest for name, (simplest, *_) in AXES.items())


def _fuller(situation: Situation, choices: Choices) -> Situation | None:
    """The situation with the choices too; None where it contradicts them."""
    there = dict(chosen(situation, [name for name, _ in choices]))
    other = {name: word for name, word in choices if there[name] != word}
    if any(name in ("site", *GROUPS) or there[name] != AXES[name][0] for name in other):
        return None
    return replace(situation, **other)


def _threes(situation: Situation) -> Iterator[Choices]:
    """Any three choices of a situation on the axes of `THREES`."""
    return (chosen(situation, names) for names in THREES)


def _all_met(situation: Situation) -> list[Choices]:
    """All that meets in a situation and must meet somewhere."""
    return [*pairs(situation), *_threes(situation)]


def simplified(situations: Iterable[Situation]) -> list[Situation]:
    """Situations that cover the same pairs, each choice at its simplest where others cover what it covers."""
    result = [*situations]
    counts = Counter(pair for situation in result for pair in pairs(situation))
    for name, (simplest, *_) in [*AXES.items()][1:]:
        for at, situation in enumerate(result):
            choice = (name, getattr(situation, name))
            simpler = replace(situation, **{name: simplest})
            alone = any(counts[pair] == 1 for pair in pairs(situation) if choice in pair)
            if simpler != situation and not alone and not why_not(simpler):
                counts.subtract(pairs(situation))
                counts.update(pairs(simpler))
                result[at] = simpler
    return [*dict.fromkeys(result)]


if __name__ == "__main__":
    known = read()
    by_twos = absorbed(known, [*missing(known), *missing_threes(known)]) if known else simplified(drawn())
    by_twos = [*by_twos, *packed(missing(by_twos))]
    write([*by_twos, *packed(missing_threes(by_twos))])
