"""Which choices meet in the situations that everyone runs, by twos and by threes, and why do others not meet?

The axes are clause, site, context, input (the class or layout of a tensor), host, optimizer and what is done. A site is
a hook kind somewhere, and each clause speaks of some.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from hookcheck.programs.situations.acts import Situation
from hookcheck.programs.situations.draw import AXES, THREES, Choices, chosen, why_none, words

PAIRS = (*combinations(AXES, 2), *(("clause", axis) for axis in AXES if axis != "site"))
TRIPLES = (
    ("clause", "outer", "input"), ("clause", "outer", "host"), ("clause", "input", "host"),
    ("site", "outer", "host"), ("site", "input", "host"), ("site", "outer", "input"), ("site", "trouble", "outer"),
    ("site", "trouble", "host"), ("site", "between", "host"), ("site", "trouble", "call"), *THREES,
)  # fmt: skip
"""The axes of which three are looked at together: what a fault of one hook kind most often needs."""

NOT_DRAWN = "possible, and in no situation"
"""The reason of choices in whose way nothing stands: pairs are all drawn, threes with lanes, others as it comes."""


@dataclass(frozen=True)
class Meeting:
    """Choices on some axes, how many situations make all of them, and the reason where none does (else empty)."""

    choices: Choices
    situations: int
    reason: str

    @property
    def row(self) -> Mapping[str, Any]:
        """As a line of JSON has it."""
        named = [f"{axis}: {word}" for axis, word in self.choices]
        return {"choices": named, "situations": self.situations, "reason": self.reason}


def meetings(
    situations: Iterable[Situation], axes: Iterable[tuple[str, ...]] = (*PAIRS, *TRIPLES)
) -> Iterator[Meeting]:
    """All choices there are on each of ``axes``, and how often they meet."""
    situations = tuple(situations)
    for names in axes:
        by_choices = Counter(chosen(situation, names) for situation in situations)
        for each in product(*map(words, names)):
            choices = tuple(zip(names, each))
            count = by_choices[choices]
            yield Meeting(choices, count, "" if count else why_none(choices) or NOT_DRAWN)


def counts(met: Iterable[Meeting]) -> list[Mapping[str, Any]]:
    """A row for each two or three axes: how many choices meet, are ruled out by a reason, and are left."""
    rows: dict[tuple[str, ...], Counter[str]] = {}
    for meeting in met:
        row = rows.setdefault(tuple(axis for axis, _ in meeting.choices), Counter())
        kind = "reached" if meeting.situations else "possible" if meeting.reason == NOT_DRAWN else "ruled out"
        row[kind] += 1
    columns = ("reached", "ruled out", "possible")
    return [{"axes": " × ".join(names), **{kind: row[kind] for kind in columns}} for names, row in rows.items()]


def reasons(met: Iterable[Meeting]) -> list[Mapping[str, Any]]:
    """Each reason why choices do not meet, and of how many it is the reason."""
    why = Counter(meeting.reason for meeting in met if meeting.reason)
    return [{"reason": reason, "choices": count} for reason, count in why.most_common()]
