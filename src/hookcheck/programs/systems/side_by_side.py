"""Where does what a program recorded differ from what is right? The comparison, and the table that shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Optional

from hookcheck.contract.finding import Finding
from hookcheck.contract.site import EQUAL, VALUE, Site
from hookcheck.contract.words import shown, stated
from hookcheck.oracle.tolerance import close
from hookcheck.programs.check import Check
from hookcheck.topology.primitive import Array

What = tuple[str, str, int]
Seen = Mapping[What, tuple[Optional[Array], ...]]
"""Arrays by (subject, what, how manieth time), as ``recorded`` of each program gives them."""


def differing(right: Seen, seen: Seen, dtype: str, device: str = "cpu") -> list[What]:
    """What is not seen as it should be, in the order of ``right``; what should not be there at all comes last.

    Rounding of ``dtype`` on ``device`` is allowed for; a missing tensor, one too many, None and another shape are
    differences.
    """
    return [what for what in {**right, **seen} if not _same(right.get(what), seen.get(what), dtype, device)]


def table(right: Seen, columns: Mapping[str, Seen], dtype: str) -> str:
    """What is right beside what each of ``columns`` saw; ≠ marks what differs from what is right."""
    rows = [["what", "oracle", *columns]]
    for what in {**right, **{key: None for seen in columns.values() for key in seen}}:
        cells = [_text(seen.get(what)) for seen in columns.values()]
        marks = ["  " if _same(right.get(what), seen.get(what), dtype, "cpu") else "≠ " for seen in columns.values()]
        rows.append([_name(what), _text(right.get(what)), *(m + c for m, c in zip(marks, cells))])
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join(" | ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def hold(check: Check, name: str, right: Seen, seen: Seen, dtype: str) -> None:
    """States that all is seen as it should be; the finding has what is not."""
    wrong = differing(right, seen, dtype, check.device)
    sides = ({_name(what): _text(side.get(what)) for what in wrong} for side in (right, seen))
    check.state(name, Finding(Site(VALUE), EQUAL, *map(stated, sides)) if wrong else None)


def _same(
    right: tuple[Array | None, ...] | None, seen: tuple[Array | None, ...] | None, dtype: str, device: str
) -> bool:
    if right is None or seen is None or len(right) != len(seen):
        return False
    return all(r is s if r is None or s is None else close(s, r, dtype, device) for r, s in zip(right, seen))


def _name(what: What) -> str:
    return "{} {} #{}".format(*what)


def _text(arrays: tuple[Array | None, ...] | None) -> str:
    return "nothing" if arrays is None else shown(arrays)
