"""How what hooks noted differs from what they had to note: as a finding, at the site where it shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hookcheck.contract.finding import Finding
from hookcheck.contract.site import ARGUMENT, CALL, COUNT, EQUAL, KEPT_ALIVE, ORDER, RAISES, Relation, Site, SiteKind

Entry = tuple[Any, ...]


def difference(name: str, expected: Sequence[Entry], observed: Sequence[Entry]) -> Finding:
    """How two logs differ, which are not the same, at the site of that name."""
    kind, relation = _how(expected, observed)
    said: list[list[str] | None] = [[*map(repr, log)] for log in (expected, observed)]
    if relation == RAISES and not any(entry[0] == "raised" and entry not in expected for entry in observed):
        said[1] = None
    return Finding(Site(kind, name), relation, *said)


def _how(expected: Sequence[Entry], observed: Sequence[Entry]) -> tuple[SiteKind, Relation]:
    raised = [[entry for entry in log if entry[0] == "raised"] for log in (expected, observed)]
    if any(entry not in raised[0] for entry in raised[1]) or any(entry not in raised[1] for entry in raised[0]):
        return CALL, RAISES
    if [entry[:1] for entry in (*expected, *observed)] == [("alive",)] * 2:
        return CALL, KEPT_ALIVE
    if len(expected) != len(observed):
        return CALL, COUNT
    return (CALL, ORDER) if sorted(map(str, expected)) == sorted(map(str, observed)) else (ARGUMENT, EQUAL)
