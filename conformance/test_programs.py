"""Clauses about acts: registering, removing, ordering, replacing, copying, and what is left behind.

A chapter of programs is a module of `hookcheck.programs.chapters`; ``--chapter handles`` runs one alone.
"""

from __future__ import annotations

from hookcheck.run.items import CellItem


def test_program(program_cell: CellItem) -> None:
    """A clause that is a program."""
    program_cell.check()
