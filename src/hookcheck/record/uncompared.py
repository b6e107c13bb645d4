"""Which cases of two records cannot be compared, and why not?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hookcheck.contract.verdict import NOT_OFFERED, PROGRAM, RAN, CaseResult
from hookcheck.record.changes import DISAPPEARED, GroupCause
from hookcheck.record.model import CORPUS, Header
from hookcheck.record.rows import Key

UNKNOWN = "unknown"
"""What a record says where torch did not tell what it computes on."""


@dataclass(frozen=True)
class LeftOut:
    """Cases that cannot be compared; ``lost`` where the earlier record answers for them and the later one cannot."""

    why: str
    families: tuple[str, ...]
    cases: int
    lost: bool


def clauses_left_out(before: Header, after: Header) -> Iterator[LeftOut]:
    """The clauses that one of two runs judged alone."""
    old, new = ({clause.id for clause in header.plan.clauses} for header in (before, after))
    for ids, which, lost in ((old - new, "earlier", True), (new - old, "later", False)):
        if ids:
            yield LeftOut(f"only the {which} run judged {', '.join(sorted(ids))}", (), 0, lost)


def left_out(
    key: Key, was: CaseResult | None, now: CaseResult | None, before: Header, after: Header
) -> tuple[str, bool] | None:
    """Why a case cannot be compared, and whether the earlier record alone answers for it; None where it can."""
    lost = False
    if was is not None and now is not None:
        why = _not_compared(was, now)
    elif was is not None:
        why = unlike(key, was, before, after)
        lost = was.origin == CORPUS and was.outcome == RAN and why != _OTHER_CORPUS
        why = why.format("earlier", "later")
    elif now is not None:
        why = (unlike(key, now, after, before) or _ABSENT).format("later", "earlier")
    return (why, lost) if why else None


_OTHER_CORPUS = "only the corpus of the {0} run has these networks"
_ABSENT = "the {1} record lacks them"


def unlike(key: Key, case: CaseResult, here: Header, there: Header) -> str:
    """Why the run ``there`` never set out to run a case of the run ``here``; empty where it did."""
    family, topology, kind = key
    mine, other = here.plan, there.plan
    if case.origin != CORPUS:
        return "only the {0} run came upon these new networks"
    if family not in other.families:
        return "the {1} run leaves out the family"
    if kind not in other.kinds:
        return "the {1} run leaves out the hook kind"
    if family == PROGRAM:
        return "" if topology in {clause.id for clause in other.clauses} else "the {1} run lacks the program"
    if mine.corpus.get(family) != other.corpus.get(family):
        return _OTHER_CORPUS
    return ""


def _not_compared(was: CaseResult, now: CaseResult) -> str:
    """Why a case that is in both records is not compared; empty where it is."""
    if was.outcome == RAN or (was.outcome == NOT_OFFERED and now.outcome == RAN):
        return ""
    if was.outcome == now.outcome:
        return f"{now.outcome} in both"
    return f"{was.outcome} in the earlier run, {now.outcome} in the later"


ROUNDED = "how a known deviation rounds, on processors that compute otherwise"


def compute_otherwise(before: Header, after: Header) -> bool:
    """Whether torch had other instructions or threads to compute on, as far as both records say."""
    both = ((h.environment.get(name, UNKNOWN) for h in (before, after)) for name in ("processor", "aten", "threads"))
    return any(UNKNOWN not in (one, other) and one != other for one, other in both)


def is_of_rounding(cause: GroupCause) -> bool:
    """Whether a known deviation is one of rounding alone, in the runs in which it shows."""
    return cause.cost == "rounding" and cause.ledger is not None and cause.status != DISAPPEARED
