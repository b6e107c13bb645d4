"""What is a program? A clause about acts rather than networks: a small program that states facts about what it did.

It is declared by `program` above a function that takes a `Check`: id, class, since and source in the decorator, the
statement as the docstring. Its chapter is the module that it stands in; cells of programs have the family ``program``
and the chapter in the place of the hook kind.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from hookcheck.contract.clause import CLAUSES, Clause, Subject
from hookcheck.contract.verdict import PROGRAM as PROGRAM
from hookcheck.programs.check import Check

Act = Callable[[Check], None]

ALONE_LIMIT = 50
"""Seconds of processor time that a program may take in a process of its own, importing torch included where that is no
fork; the slowest takes some 15."""

ALONE_HANG_LIMIT = 240
"""Seconds that it may take by the clock: a program that waits takes no processor time."""


WHOLE, ENDS = "program", "the program ends"
"""The subject of what befell a program as a whole, and what is expected of it."""


@dataclass(frozen=True, eq=False)
class Program(Clause):
    """A clause that is a program.

    ``since`` is the first release that has what it is about. With ``alone`` it runs in a process of its own, since it
    can end or spoil the one that it runs in. ``device`` is the one that it is about: ``cpu``,
    ``cuda`` or ``any``.
    """

    alone: bool = False
    device: str = "any"

    @property
    def source_code(self) -> str:
        """The text of the program."""
        return inspect.getsource(self.judge)


def program(
    id: str, rank: str, since: str, source: str, alone: bool = False, device: str = "any"
) -> Callable[[Act], Act]:
    """Declares the function below it as a program (see `Program`)."""

    def declare(act: Act) -> Act:
        if id in CLAUSES:
            raise ValueError(f"two clauses have the id {id}")
        statement = " ".join((act.__doc__ or "").split())
        chapter = act.__module__.rpartition(".")[2].replace("_", "-")
        CLAUSES[id] = Program(id, rank, statement, since, source, (chapter,), Subject.PROGRAM, act, alone, device)
        return act

    return declare


def programs(chapter: str) -> tuple[Program, ...]:
    """The programs of a chapter, in the order of declaration."""
    return tuple(c for c in CLAUSES.values() if isinstance(c, Program) and c.chapter == chapter)


def chapters() -> tuple[str, ...]:
    """The chapters that have programs, in the order of declaration."""
    return tuple(dict.fromkeys(c.chapter for c in CLAUSES.values() if isinstance(c, Program)))
