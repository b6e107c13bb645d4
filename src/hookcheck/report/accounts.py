"""What was not run, and why? Cases that are accounted for instead, counted by outcome and reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hookcheck.contract.verdict import RAN, VERDICTS, CaseResult


@dataclass(frozen=True)
class Account:
    """``cases`` cases that share a reason and an outcome other than ``ran``; ``topology`` is the first."""

    outcome: str
    reason: str
    kinds: tuple[str, ...]
    families: tuple[str, ...]
    cases: int
    topology: str


def accounts(cases: Iterable[CaseResult]) -> tuple[Account, ...]:
    """Accounts of those of ``cases`` that did not run, crashes first."""
    grouped: dict[tuple[str, str], list[CaseResult]] = {}
    for case in cases:
        if case.outcome != RAN:
            grouped.setdefault((case.outcome, case.reason), []).append(case)
    collected = [
        Account(
            *key,
            kinds=tuple(dict.fromkeys(case.kind for case in group)),
            families=tuple(dict.fromkeys(case.family for case in group)),
            cases=len(group),
            topology=group[0].topology,
        )
        for key, group in grouped.items()
    ]
    return tuple(sorted(collected, key=lambda account: VERDICTS.index(account.outcome)))


def fold(by_column: Mapping[str, Iterable[Account]]) -> dict[Account, tuple[str, ...]]:
    """Each account once, with the names of all columns that have it, crashes first."""
    folded: dict[Account, list[str]] = {}
    for name, present in by_column.items():
        for account in present:
            folded.setdefault(account, []).append(name)
    ordered = sorted(folded.items(), key=lambda item: VERDICTS.index(item[0].outcome))
    return {account: tuple(names) for account, names in ordered}


def some(names: Sequence[str], noun: str, most: int = 4) -> str:
    """``names`` as a list, or how many there are of ``noun`` where they are more than ``most``.

    >>> some(("view", "nested"), "families")
    'view, nested'
    >>> some(("view", "nested"), "families", 1)
    '2 families'
    """
    return ", ".join(names) if len(names) <= most else f"{len(names)} {noun}"
