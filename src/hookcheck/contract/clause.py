"""What is a clause? One promise about hooks as a function that judges one subject of a case.

A clause is declared by `clause` above a function: id, class, subject, since and source in the decorator, the statement
as the docstring. The function gives None where the subject conforms, a `Finding` where it deviates, `NOTHING` where
the clause has no say on it, and `NOT_JUDGED` where it would, were it known what must be seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Union

from hookcheck.contract.finding import Finding
from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import BACKWARD, KINDS, HookKind

PROMISE, PIN, CLAIM, UNSPECIFIED = "promise", "pin", "claim", "unspecified"
RANKS = (PROMISE, PIN, CLAIM, UNSPECIFIED)


class Subject(Enum):
    """What a clause judges: each call of a module, each firing that is due, each event, each new warning (None where
    there is none), the run as a whole, or, of a program, its facts (see `hookcheck.programs.program`)."""

    CALL = "call"
    FIRING = "firing"
    EVENT = "event"
    WARNING = "warning"
    RUN = "run"
    PROGRAM = "program"


class Nothing(Enum):
    """The type of `NOTHING` and of `NOT_JUDGED`."""

    NOTHING = "nothing to judge"
    NOT_JUDGED = "not judged"


NOTHING, NOT_JUDGED = Nothing.NOTHING, Nothing.NOT_JUDGED
"""The clause has no say on the subject; or it has, but what must be seen cannot be foretold, and that is counted."""
Judgement = Union[Finding, Nothing, None]


@dataclass(frozen=True, eq=False)
class Clause:
    """A promise: ``id``, its class ``rank`` (one of `RANKS`), its one-sentence ``statement``, the release
    ``since`` which it holds, the ``source`` that promises it, the hook ``kinds`` that it speaks of, and its judge."""

    id: str
    rank: str
    statement: str
    since: str
    source: str
    kinds: tuple[str, ...]
    subject: Subject
    judge: Callable[..., Judgement]

    def __reduce__(self) -> tuple[Any, ...]:
        """Between processes it goes by its id: both have declared it."""
        return clause_named, (self.id,)

    @property
    def chapter(self) -> str:
        """The chapter that it belongs to, which is the module that it stands in: ``forward-hooks``."""
        return self.judge.__module__.rpartition(".")[2].replace("_", "-")


CLAUSES: dict[str, Clause] = {}
"""Every declared clause by id, in the order of declaration (see `hookcheck.clauses`)."""


def clause(
    id: str,
    rank: str,
    subject: Subject,
    since: str,
    source: str,
    of: Callable[[HookKind], bool] = lambda kind: kind.call == BACKWARD,
) -> Callable[[Callable[..., Judgement]], Callable[..., Judgement]]:
    """Declares the function below it as a clause of the hook kinds ``of`` which it speaks: module backward hooks."""

    def declare(judge: Callable[..., Judgement]) -> Callable[..., Judgement]:
        if id in CLAUSES:
            raise ValueError(f"two clauses have the id {id}")
        kinds = tuple(name for name, kind in KINDS.items() if of(kind))
        statement = " ".join((judge.__doc__ or "").split())
        CLAUSES[id] = Clause(id, rank, statement, since, source, kinds, subject, judge)
        return judge

    return declare


def clause_named(id: str) -> Clause:
    """The clause of that id.

    Raises:
        HookcheckError: there is none.
    """
    if id not in CLAUSES:
        raise HookcheckError(f"unknown clause {id!r}; `hookcheck list` shows them all")
    return CLAUSES[id]


def described(clause: Clause) -> dict[str, Any]:
    """The clause as plain values: what a record's plan and ``hookcheck list`` hold."""
    return {
        "id": clause.id,
        "class": clause.rank,
        "statement": clause.statement,
        "since": clause.since,
        "source": clause.source,
        "kinds": list(clause.kinds),
    }
