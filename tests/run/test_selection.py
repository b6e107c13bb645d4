"""Is of a family only that run whose cells were picked out?"""

from __future__ import annotations

from dataclasses import dataclass

from hookcheck.run.selection import selected


@dataclass(frozen=True)
class Cell:
    clause: str
    family: str
    kind: str
    device: str = "cpu"


KINDS = ("full", "legacy")
OFFERED = [Cell(clause, family, kind) for clause in "AB" for family in ("view", "nested") for kind in KINDS]
PROGRAMS = [Cell(clause, "program", "chapter") for clause in "CD"]


def test_all_of_it_where_all_is_picked() -> None:
    assert selected([*OFFERED, *PROGRAMS], [*OFFERED, *PROGRAMS]) == {}


def test_the_kinds_of_the_cells_that_are_picked() -> None:
    assert selected([OFFERED[0]], OFFERED) == {("view", "cpu"): {"full"}}
    assert selected([OFFERED[0], OFFERED[1]], OFFERED) == {}  # every kind of the family


def test_of_programs_the_clauses() -> None:
    assert selected([PROGRAMS[1]], PROGRAMS) == {("program", "cpu"): {"D"}}
