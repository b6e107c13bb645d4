"""What changed on the way to one release, from each of those before it: a change that several of them share once.

So the pages of all pairs of releases grow with the releases, and not with the pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hookcheck.record.compare import Group, cost_order
from hookcheck.record.uncompared import LeftOut
from hookcheck.report.view import Changes


@dataclass(frozen=True)
class Shared:
    """A change, or what could not be compared, on the way from several releases.

    ``item`` is that of the newest of them; ``cases`` has their number by the place of the earlier run.
    """

    item: Group | LeftOut
    cases: Mapping[int, int]

    @property
    def ranges(self) -> tuple[str, ...]:
        """The places and their number of cases, neighbours with the same number once: ``1-3:8``, ``5:2``."""
        runs: list[tuple[int, int, int]] = []
        for place, count in sorted(self.cases.items()):
            first, last, same = runs[-1] if runs else (0, -1, count)
            if (last + 1, same) == (place, count):
                runs[-1] = (first, place, count)
            else:
                runs.append((place, place, count))
        return tuple(f"{first}:{count}" if first == last else f"{first}-{last}:{count}" for first, last, count in runs)


@dataclass(frozen=True)
class Arrival:
    """All changes on the way to one run, by the places of the earlier runs, in the order of their readers."""

    pairs: Mapping[int, Changes]
    worse: tuple[Shared, ...]
    mended: tuple[Shared, ...]
    other: tuple[Shared, ...]
    withdrawn: tuple[Shared, ...]
    offered: tuple[Shared, ...]
    left_out: tuple[Shared, ...]


def arrival(pairs: Mapping[int, Changes]) -> Arrival:
    """The changes ``pairs``, by the place of the earlier run, the newest first, put together."""
    worse, mended, other, withdrawn, offered = (
        _shared((place, group) for place, changed in pairs.items() for group in getattr(changed, part))
        for part in ("worse", "mended", "other", "withdrawn", "offered")
    )
    return Arrival(pairs, worse, mended, other, withdrawn, offered, _left_out(pairs))


def _shared(groups: Iterable[tuple[int, Group]]) -> tuple[Shared, ...]:
    by_cause: dict[object, tuple[Group, dict[int, int]]] = {}
    for place, group in groups:
        by_cause.setdefault(group.cause, (group, {}))[1][place] = group.cases
    ordered = sorted(by_cause.values(), key=lambda each: cost_order(each[0]))
    return tuple(Shared(group, cases) for group, cases in ordered)


def _left_out(pairs: Mapping[int, Changes]) -> tuple[Shared, ...]:
    by_reason: dict[str, tuple[LeftOut, dict[int, int]]] = {}
    for place, changed in pairs.items():
        for item in changed.comparison.left_out:
            cases = by_reason.setdefault(item.why, (item, {}))[1]
            cases[place] = cases.get(place, 0) + item.cases
    return tuple(Shared(item, cases) for item, cases in by_reason.values())
