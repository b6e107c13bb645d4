"""The failures of a run, each cause once: its smallest network, and where else it shows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_CAUSE = re.compile(r"(?P<clause>\S+) \((?P<family>[^,()]+), (?P<kind>[^()]+)\): (?P<gap>.+) at \S+")
"""How the text of a cell that the ledger does not explain begins (see `hookcheck.report.counterexample.told`)."""

PLACES = 6
"""How many of the other cells are named."""


def fold(reports: Iterable[Any]) -> int:
    """Has pytest print one of the ``reports`` of failed cells a cause (clause and gap); how many of them have a cause.

    It is the shortest text, that of the smallest network. The others are counted and named at its end; in pytest's
    counts they stay. Reports of other tests, and of programs, which each have a text of their own, are left alone.
    """
    causes: dict[tuple[str, str], list[tuple[Any, str]]] = {}
    for report in reports:
        match = _CAUSE.match(str(report.longrepr))
        if match and match["family"]:
            place = f"{match['family']} with {match['kind']}"
            causes.setdefault((match["clause"], match["gap"]), []).append((report, place))
    for same in causes.values():
        same.sort(key=lambda item: len(str(item[0].longrepr)))
        (shown, _), *others = same
        for report, _ in others:
            report._pdbshown = True  # what pytest leaves out of its section of failures
        if others:
            named = ", ".join(place for _, place in others[:PLACES])
            more = f" and {len(others) - PLACES} more" if len(others) > PLACES else ""
            shown.longrepr = f"{shown.longrepr}\nthe same in {len(others)} more cells: {named}{more}"
    return sum(map(len, causes.values()))
