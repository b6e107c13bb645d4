"""Where does what a program recorded differ from what is right? The comparison, and the table that shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Optional

from hookcheck.contract.words import shown
from hookcheck.oracle.tolerance import close
from hookcheck.topology.primitive import Array

What = tuple[str, str, int]
Seen = Mapping[What, tuple[Optional[Array], ...]]
"""Arrays by (subject, what, how manieth time), as ``recorded`` of each program gives them."""


def differing(right: Seen, seen: Seen, dtype: str) -> list[What]:
    """What is not seen as it should be, in the order of ``right``; what should not be there at all comes last.

    Rounding of ``dtype`` is allowed for; a missing tensor, one too many, None and another shape are differences.
    """
    return [what for what in {**right, **seen} if not _same(right.get(what), seen.get(what), dtype)]


def table(right: Seen, columns: Mapping[str, Seen], dtype: str) -> str:
    """What is right beside what each of ``columns`` saw; ≠ marks what differs from what is right."""
    rows = [["what", "oracle", *columns]]
    for what in {**right, **{key: None for seen in columns.values() for key in seen}}:
        cells = [_text(seen.get(what)) for seen in columns.values()]
        marks = ["  " if _same(right.get(what), seen.get(what), dtype) else "≠ " for seen in columns.values()]
        rows.append(["{} {} #{}".format(*what), _text(right.get(what)), *(m + c for m, c in zip(marks, cells))])
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join(" | ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def assert_same(right: Seen, seen: Seen, dtype: str) -> None:
    """Fails with the table of what differs."""
    wrong = differing(right, seen, dtype)
    parts = [{what: side[what] for what in wrong if what in side} for side in (right, seen)]
    assert not wrong, f"\n{table(parts[0], {'seen': parts[1]}, dtype)}"


def _same(right: tuple[Array | None, ...] | None, seen: tuple[Array | None, ...] | None, dtype: str) -> bool:
    if right is None or seen is None or len(right) != len(seen):
        return False
    return all(r is s if r is None or s is None else close(s, r, dtype, "cpu") for r, s in zip(right, seen))


def _text(arrays: tuple[Array | None, ...] | None) -> str:
    return "nothing" if arrays is None else shown(arrays)
