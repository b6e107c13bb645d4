"""What a clause finds wrong: a relation that does not hold, at a site, between what is expected and what is observed.

The words for people, the gap that records and the ledger name it by, and its cost are all drawn from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hookcheck.contract.site import (
    ABSENT,
    ARGUMENT,
    AS_WITHOUT_HOOKS,
    CALL,
    CLOSE,
    COUNT,
    ENTRY,
    EQUAL,
    KEPT_ALIVE,
    NONE,
    ORDER,
    PROCESS,
    RAISES,
    VALUE,
    WARNS,
    Relation,
    Site,
    SiteKind,
)
from hookcheck.contract.verdict import GAPS
from hookcheck.contract.words import Stated, joined, shown
from hookcheck.probe.observation import Copy


@dataclass(frozen=True, eq=False)
class Gradients:
    """The gradients that a hook was given, one an entry.

    ``wrong`` are the positions at which they are not what is expected; ``moved`` those of them that hold what is
    expected at another position. ``identify`` says which gradient each really is, where that is known: ``bias``,
    ``input[0]``, ``weight transposed``.
    """

    entries: tuple[Copy, ...]
    wrong: tuple[int, ...] = ()
    moved: frozenset[int] = frozenset()
    identify: Callable[[], tuple[str, ...]] | None = None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Which gradient each entry really is; empty where that is not asked."""
        return self.identify() if self.identify else ()

    def __len__(self) -> int:
        """How many there are."""
        return len(self.entries)


@dataclass(frozen=True, eq=False)
class Rounded:
    """A value that differs from what is expected by no more than rounding explains."""

    value: Copy


@dataclass(frozen=True, eq=False)
class Finding:
    """A ``relation`` that does not hold at a ``site`` between what is ``expected`` and what is ``observed``.

    Both sides are copied values (see `hookcheck.probe.observation`), numbers of calls, texts for what has no value, or
    what a program states (`Stated`); None stands for no gradient, no exception, no warning or no end of a process.
    """

    site: Site
    relation: Relation
    expected: Any
    observed: Any

    @cached_property
    def gap(self) -> str:
        """One of `GAPS`: what records and the ledger call it."""
        if self.relation == AS_WITHOUT_HOOKS and isinstance(self.observed, Rounded):
            return "other rounding"
        if isinstance(self.observed, Gradients) and self.relation == CLOSE:
            return min((_of_entry(self.observed, self.expected, i) for i in self.observed.wrong), key=GAPS.index)
        one_is_none = self.relation == AS_WITHOUT_HOOKS and (self.expected is None) is not (self.observed is None)
        relation = NONE if one_is_none else self.relation
        less, more = _BY_RELATION.get(relation) or _BY_SITE[self.site.kind, relation]
        return less if less == more or self._less(relation) else more

    def _less(self, relation: Relation) -> bool:
        """Whether less is observed than is expected."""
        if relation in (NONE, RAISES):
            return self.observed is None
        return self.expected is not None if relation == WARNS else size(self.observed) < size(self.expected)

    @property
    def more(self) -> int:
        """By how many calls, entries or names more is observed than is expected."""
        return size(self.observed) - size(self.expected)

    def words(self) -> tuple[str, str]:
        """What was expected and what was observed, as texts."""
        name = f"{self.site.name}: " if self.site.name else ""
        return f"{name}{self._side(self.expected)}", self._side(self.observed)

    def _side(self, value: Any) -> str:
        if value is None:
            return _NOTHING.get(self.relation, "still running" if self.site.kind == PROCESS else "None")
        if self.site.kind == CALL and isinstance(value, int):
            return f"{value} calls"
        if isinstance(value, list) and (self.site.kind == CALL or self.relation == KEPT_ALIVE):
            return joined(value) or "nothing"
        if isinstance(value, Gradients):
            entries = shown(value.entries)
            return f"{entries}, which is {shown(value.names)}" if {*value.names} - {UNKNOWN, "None"} else entries
        return shown(value.value if isinstance(value, Rounded) else value)


UNKNOWN = "unknown"
"""What an entry is named that is no gradient which anything has."""

_NOTHING: Mapping[Relation, str] = {RAISES: "no error", WARNS: "no warning"}
"""What None stands for in words, where it is not None."""


def _same(gap: str) -> tuple[str, str]:
    return gap, gap


_BY_RELATION: Mapping[Relation, tuple[str, str]] = {
    NONE: ("None instead of a gradient", "a gradient instead of None"),
    ORDER: _same("wrong order"),
    RAISES: ("not raised", "raised"),
    WARNS: ("no warning", "new warning"),
    KEPT_ALIVE: _same("kept alive"),
}
"""The gaps that a relation alone tells: where less is observed than is expected, and where it is not."""

_BY_SITE: Mapping[tuple[SiteKind, Relation], tuple[str, str]] = {
    **{(VALUE, relation): _same("wrong values") for relation in (EQUAL, CLOSE, ABSENT, AS_WITHOUT_HOOKS)},
    **{(ARGUMENT, relation): _same("wrong arguments") for relation in (EQUAL, COUNT, ABSENT, AS_WITHOUT_HOOKS)},
    **{(CALL, relation): ("not fired", "fired too often") for relation in (EQUAL, COUNT)},
    **{(ENTRY, relation): ("missing entries", "extra entries") for relation in (EQUAL, COUNT)},
    (PROCESS, EQUAL): ("timed out", "crashed"),
}
"""The gaps that it takes the site to tell."""


def _of_entry(observed: Gradients, expected: tuple[Any, ...], position: int) -> str:
    """How a wrong entry differs."""
    name = observed.names[position] if observed.names else UNKNOWN
    if not any(word in name for word in (UNKNOWN, "input[", "output[")):
        return "parameter gradients mixed in"
    if position in observed.moved:
        return "wrong slots"
    shapes = [getattr(side[position], "shape", None) for side in (observed.entries, expected)]
    return "wrong shape" if None not in shapes and shapes[0] != shapes[1] else "wrong values"


def size(side: Any) -> int:
    """How much there is on one side: a number of calls, entries, or 1 for what is no list, 0 for nothing."""
    side = side.value if isinstance(side, Stated) else side
    if side is None or isinstance(side, int):
        return side or 0
    return len(side) if isinstance(side, (list, tuple, dict, Gradients)) else 1
