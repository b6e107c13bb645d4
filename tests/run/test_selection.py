"""Is of a family only that run whose cells were picked out, and what takes long first?"""

from __future__ import annotations

from dataclasses import dataclass

from hookcheck.run.selection import selected, turn


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


def test_what_takes_long_is_first_and_what_explores_last() -> None:
    ids = ["x.py::new[view:cpu]", "x.py::net[OB-01:view:forward:cpu]", "x.py::net[OB-01:compiled:forward:cpu]"]
    programs = ["x.py::act[TF-01:program:torch-func:cpu]", "x.py::act[HO-03:program:clauses-on-hosts:cpu]"]
    assert sorted([*ids, *programs], key=turn) == [ids[2], programs[1], ids[1], programs[0], ids[0]]
