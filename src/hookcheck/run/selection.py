"""What of a family is to be run where some of its cells were picked out, by their names or by pytest's own options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hookcheck.contract.verdict import PROGRAM

Place = tuple[str, str]
"""Family and device."""


def selected(picked: Iterable[Any], offered: Iterable[Any]) -> Mapping[Place, frozenset[str]]:
    """For each family and device of which fewer cells are ``picked`` than ``offered``: the hook kinds of the picked
    ones, or of programs the clauses.

    Where the cells that are picked have all hook kinds the family is not there: a kind without a cell is run as well.
    """
    chosen, all_of = _by_place(picked), _by_place(offered)
    return {place: names for place, names in chosen.items() if names != all_of[place]}


def _by_place(cells: Iterable[Any]) -> dict[Place, frozenset[str]]:
    found: dict[Place, set[str]] = {}
    for cell in cells:
        name = cell.clause if cell.family == PROGRAM else cell.kind
        found.setdefault((cell.family, cell.device), set()).add(name)
    return {place: frozenset(names) for place, names in found.items()}


def scope(nodeid: str) -> str:
    """What an item shares runs of torch with: family and device for a cell, of programs the chapter as well, for any
    other item itself."""
    parts = nodeid.rpartition("[")[2].rstrip("]").split(":")
    if len(parts) != 4:
        return nodeid
    _, family, kind, device = parts
    return f"{family}:{kind}:{device}" if family == PROGRAM else f"{family}:{device}"
