"""The failures of a run, each cause once: its smallest network, and where else it shows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from hookcheck.contract.verdict import LOST

_CELL = r"\((?P<family>[^,()]+), (?P<kind>[^()]+)\)"
_TEXTS = (
    re.compile(rf"(?P<what>\S+) {_CELL}: (?P<how>.+) at \S+"),
    re.compile(rf"(?P<what>{'|'.join(LOST)}) {_CELL}: .+\n(?P<how>topology \S+):"),
)
"""How the text of a cell begins that the ledger does not explain (see `hookcheck.report.counterexample`): by clause
and gap, and where a case took the process along by how it did, and on which network."""

PLACES = 6
"""How many of the other cells are named."""


def fold(reports: Iterable[Any]) -> int:
    """Has pytest print one of the ``reports`` of failed cells a cause; how many of them have a cause.

    It is the shortest text, that of the smallest network. The others are counted and named at its end; in pytest's
    counts they stay. Reports of other tests, and of programs, which each have a text of their own, are left alone.
    """
    causes: dict[tuple[str, str], list[tuple[Any, str]]] = {}
    for report in reports:
        match = next(filter(None, (text.match(str(report.longrepr)) for text in _TEXTS)), None)
        if match:
            place = f"{match['family']} with {match['kind']}"
            causes.setdefault((match["what"], match["how"]), []).append((report, place))
    for same in causes.values():
        same.sort(key=lambda item: len(str(item[0].longrepr)))
        (shown, _), *others = same
        for report, _ in others:
            report._pdbshown = True  # what pytest leaves out of its section of failures
        if others:
            places = list(dict.fromkeys(place for _, place in others))
            named = ", ".join(places[:PLACES])
            more = f" and {len(places) - PLACES} more" if len(places) > PLACES else ""
            cells = "cells" if len(others) > 1 else "cell"
            shown.longrepr = f"{shown.longrepr}\nthe same in {len(others)} more {cells}: {named}{more}"
    return sum(map(len, causes.values()))
