"""How what hooks noted differs from what they had to note, as a finding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hookcheck.contract import finding

Entry = tuple[Any, ...]


def difference(name: str, expected: Sequence[Entry], observed: Sequence[Entry]) -> finding.Finding:
    """How two logs differ, which are not the same, at the site of that name."""
    kind, relation = _how(expected, observed)
    said: list[list[str] | None] = [[*map(repr, log)] for log in (expected, observed)]
    if relation == finding.RAISES and not any(entry[0] == "raised" and entry not in expected for entry in observed):
        said[1] = None
    return finding.Finding(finding.Site(kind, name), relation, *said)


def _how(expected: Sequence[Entry], observed: Sequence[Entry]) -> tuple[finding.SiteKind, finding.Relation]:
    raised = [[entry for entry in log if entry[0] == "raised"] for log in (expected, observed)]
    if any(entry not in raised[0] for entry in raised[1]) or any(entry not in raised[1] for entry in raised[0]):
        return finding.CALL, finding.RAISES
    if [entry[:1] for entry in (*expected, *observed)] == [("alive",)] * 2:
        return finding.CALL, finding.KEPT_ALIVE
    if len(expected) != len(observed):
        return finding.CALL, finding.COUNT
    return (
        (finding.CALL, finding.ORDER)
        if sorted(map(str, expected)) == sorted(map(str, observed))
        else (finding.ARGUMENT, finding.EQUAL)
    )
