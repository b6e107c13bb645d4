"""What is to be run where items were picked out: by their names, by pytest's own options, or by the suite's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from hookcheck.contract.verdict import PROGRAM
from hookcheck.run.items import CellItem
from hookcheck.run.plan import SLOW
from hookcheck.topology.families import RARE

CELLS = ("network_cell", "program_cell")
"""What a test takes to be run once a cell: of clauses on networks, or of programs."""

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
    names_at: dict[Place, set[str]] = {}
    for cell in cells:
        name = cell.clause if cell.family == PROGRAM else cell.kind
        names_at.setdefault((cell.family, cell.device), set()).add(name)
    return {place: frozenset(names) for place, names in names_at.items()}


def turn(nodeid: str) -> int:
    """When an item has its turn: first what takes long, so that no worker is at it alone in the end; last what
    explores, which is many short items."""
    parts = _parts(nodeid)
    if len(parts) != 4:
        return 2
    _, family, kind, _ = parts
    return 0 if (kind in SLOW if family == PROGRAM else family in RARE) else 1


def scope(nodeid: str) -> str:
    """What an item shares runs of torch with: family and device for a cell, of programs the chapter as well, for any
    other item itself."""
    parts = _parts(nodeid)
    if len(parts) != 4:
        return nodeid
    _, family, kind, device = parts
    return f"{family}:{kind}:{device}" if family == PROGRAM else f"{family}:{device}"


def _parts(nodeid: str) -> list[str]:
    return nodeid.rpartition("[")[2].rstrip("]").split(":")


def is_of_no_cell(item: pytest.Item) -> bool:
    """Whether an item is what pytest leaves of a test where no cell is selected."""
    values = item.callspec.params if hasattr(item, "callspec") else {}
    return any(name in values and not isinstance(values[name], CellItem) for name in CELLS)
