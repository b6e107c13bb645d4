"""The failures of a run, each cause once: its smallest network, and where else it shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from hookcheck.contract.verdict import LOST

_CELL = r"\((?P<family>[^,()]+), (?P<kind>[^()]+)\)"
_TEXTS = (
    re.compile(rf"(?P<what>\S+) {_CELL}: (?P<how>.+) at \S+"),
    re.compile(rf"(?P<what>{'|'.join(LOST)}) {_CELL}: .+\n(?P<how>topology \S+):"),
    re.compile(r"(?P<what>\S+) \((?P<family>)(?P<kind>[^,()]+)\): .+\nsource: .+\n(?P<how>.+)\n  expected: "),
)
"""How the text of a cell begins that the ledger does not explain (see `hookcheck.report.counterexample`): by clause
and gap, where a case took the process along by how it did, and on which network, and of a program by what it states
first that is not so."""

PLACES = 6
"""How many of the other cells are named."""

FEW = 3
"""So many causes have their whole text printed."""


def fold(reports: Sequence[Any]) -> int:
    """Has pytest print one of the ``reports`` of failed cells a cause; how many of them have a cause.

    It is the shortest text, that of the smallest network. The others are counted and named at its end; in pytest's
    counts they stay. Where there are more than `FEW` causes, that of the most cells is printed, and the others are
    left to the summary of the run. Reports of other tests are left alone.
    """
    causes: dict[tuple[str, str], list[_Failure]] = {}
    for report in reports:
        match = next(filter(None, (text.match(str(report.longrepr)) for text in _TEXTS)), None)
        if match:
            causes.setdefault((match["what"], match["how"]), []).append((report, match))
    for same in causes.values():
        same.sort(key=_length)
        _name_others(same)
    if len(causes) > FEW:
        widest = min(causes.values(), key=lambda same: (-len(same), _length(same[0])))
        others = [same[0][0] for same in causes.values() if same is not widest]
        shown = widest[0][0]
        shown.longrepr = f"{shown.longrepr}\n\n{len(others)} more causes, which -v tells in full\n"
        for report in others:
            _leave_out(report)
    return sum(map(len, causes.values()))


_Failure = tuple[Any, "re.Match[str]"]
"""A report, and how its text begins."""


def _length(failure: _Failure) -> int:
    return len(str(failure[0].longrepr))


def _leave_out(report: Any) -> None:
    """Has pytest leave a report out of its section of failures."""
    report._pdbshown = True


def _name_others(same: Sequence[_Failure]) -> None:
    """Has the first of several failures with one cause speak for the others."""
    (shown, _), *others = same
    if hasattr(shown, "node"):
        del shown.node  # of which worker it is has no meaning
    for report, _ in others:
        _leave_out(report)
    if others:
        places = list(dict.fromkeys(f"{match['family']} with {match['kind']}" for _, match in others))
        named = ", ".join(places[:PLACES])
        more = f" and {len(places) - PLACES} more" if len(places) > PLACES else ""
        cells = f"{len(others)} more {'cell' if len(others) == 1 else 'cells'}"
        shown.longrepr = f"{shown.longrepr}\nthe same in {cells}: {named}{more}"
