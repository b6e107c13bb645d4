"""Which clauses run on which hosts of modules and of optimizers, and why not the others? As in the newest release.

They are the clauses of those chapters that run unchanged on hosts (`hookcheck.programs.chapters.clauses_on_hosts`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from hookcheck.programs.chapters.clauses_on_hosts import ON_HOSTS, left_out, replaced
from hookcheck.programs.host_kinds import ON_NO_HOST, Kind
from hookcheck.programs.hosting import ALL_MODULES, OPTIMIZERS
from hookcheck.programs.making import makes
from hookcheck.programs.program import Program, programs

OTHERWISE = "it makes its modules or optimizers otherwise than by the names of which the host takes the place"


@dataclass(frozen=True)
class ClauseOnHost:
    """A clause on a host: the reason why it does not run there, else empty; and patterns of its facts that are left
    out there."""

    clause: str
    host: str
    reason: str
    without: tuple[str, ...]


def clauses_on_hosts() -> Iterator[ClauseOnHost]:
    """Each of the clauses on each host, but for those on modules alone on optimizers, and the other way round."""
    for kinds, chapters in ON_HOSTS:
        clauses = [one for chapter in chapters for one in programs(chapter)]
        for host, kind in kinds.items():
            reasons = {**ON_NO_HOST, **kind.but}
            yield from (_on_host(one, host, kind, reasons) for one in clauses if _is_about(kind, one))


def _is_about(kind: Kind, one: Program) -> bool:
    """Whether a program makes something of the sort that the host is, or nothing at all."""
    sort = OPTIMIZERS if {*kind.names} <= {*OPTIMIZERS} else ALL_MODULES
    return not makes(one) or bool(makes(one) & {*sort})


def _on_host(one: Program, host: str, kind: Kind, reasons: Mapping[str, str]) -> ClauseOnHost:
    otherwise = "" if replaced(kind, one) else OTHERWISE
    why = next((why for _, why in left_out(reasons, one.id, one.chapter)), otherwise)
    facts = (pattern.partition(": ") for pattern in reasons if ": " in pattern)
    return ClauseOnHost(
        one.id, host, why, () if why else tuple(fact for id, _, fact in facts if fnmatchcase(one.id, id))
    )


def by_host(rows: Iterable[ClauseOnHost]) -> list[Mapping[str, Any]]:
    """A row for each host: how many clauses run there whole, or but for some facts, and how many do not."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        counts.setdefault(row.host, Counter())["no" if row.reason else "in part" if row.without else "whole"] += 1
    return [{"host": host, **{column: each[column] for column in BY_HOST[1:]}} for host, each in counts.items()]


BY_HOST = ("host", "whole", "in part", "no")
"""The columns of `by_host`."""


def by_reason(rows: Iterable[ClauseOnHost]) -> list[Mapping[str, Any]]:
    """Each reason why clauses do not run on hosts, and of how many it is the reason."""
    why = Counter(row.reason for row in rows if row.reason)
    return [{"reason": reason, "clauses": count} for reason, count in why.most_common()]
