"""Does a record agree with itself? What a schema cannot say of single lines, said of all of them together.

The same check guards both ways: no record that it refuses is written, and none is read.
"""

from __future__ import annotations

from pathlib import Path

from packaging.version import InvalidVersion, Version

from hookcheck.contract.verdict import CRASHED, OUTCOMES, RAN, TIMED_OUT
from hookcheck.record.errors import DuplicateCase, InconsistentRecord
from hookcheck.record.model import CORPUS, Alike, Folded


def check(record: Folded, path: Path) -> None:
    """Refuse ``record``, kept in ``path``, where it contradicts itself.

    Raises `DuplicateCase` for a case that is there twice and `InconsistentRecord` for every other contradiction.
    """
    _check_header(record, path)
    _check_cases(record, path)
    _check_counterexamples(record, path)
    _check_footer(record, path)


def _check_header(record: Folded, path: Path) -> None:
    version = record.header.torch.version
    try:
        Version(version)
    except InvalidVersion:
        raise InconsistentRecord(path, 1, f"{version!r} is no version of torch") from None


def _check_cases(record: Folded, path: Path) -> None:
    plan = record.header.plan
    families, kinds, clauses = set(plan.families), set(plan.kinds), {clause.id for clause in plan.clauses}
    seen: dict[tuple[str, str, str], set[str]] = {}
    for alike in record.alike:
        for kind in alike.kinds:
            known = seen.setdefault((alike.family, kind, alike.origin), set())
            count = len(known) + len(alike.topologies)
            known.update(alike.topologies)
            if len(known) != count:
                key = " / ".join((alike.family, _repeated(record, alike, kind), kind, alike.origin))
                raise DuplicateCase(path, None, f"case {key} is there twice")
        if alike.family not in families:
            raise InconsistentRecord(path, None, f"the plan has no family {alike.family!r}")
        if not kinds.issuperset(alike.kinds):
            kind = next(kind for kind in alike.kinds if kind not in kinds)
            raise InconsistentRecord(path, None, f"the plan has no hook kind {kind!r}")
        if not alike.clauses <= clauses:
            raise InconsistentRecord(path, None, f"the plan has no clause {min(alike.clauses - clauses)!r}")
        if (alike.outcome == RAN) == bool(alike.reason):
            cause = f"a case with outcome {alike.outcome!r} has reason {alike.reason!r}"
            where = " / ".join((alike.family, alike.topologies[0], alike.kinds[0], alike.origin))
            raise InconsistentRecord(path, None, f"{where}: {cause}")


def _repeated(record: Folded, like: Alike, kind: str) -> str:
    """The first topology that is there twice among the cases of a hook kind that share family and origin with
    ``like``."""
    seen: set[str] = set()
    for alike in record.alike:
        if (alike.family, alike.origin) == (like.family, like.origin) and kind in alike.kinds:
            for topology in alike.topologies:
                if topology in seen:
                    return topology
                seen.add(topology)
    raise AssertionError("no topology is there twice")


def _check_counterexamples(record: Folded, path: Path) -> None:
    deviating = [alike for alike in record.alike if alike.deviations]
    lost = [alike for alike in record.alike if alike.outcome in (CRASHED, TIMED_OUT)]
    worth_showing = {topology for alike in (*deviating, *lost) for topology in alike.topologies}
    shown: set[str] = set()
    for counterexample in record.counterexamples:
        topology = counterexample.topology
        if topology in shown:
            raise InconsistentRecord(path, None, f"the counterexample {topology} is there twice")
        if topology not in worth_showing:
            raise InconsistentRecord(path, None, f"no case of the topology {topology} deviates or was lost")
        shown.add(topology)
    shows = (alike.worded for alike in deviating if alike.worded and not shown.isdisjoint(alike.topologies))
    hidden = set[tuple[str, str, str]]().union(*(alike.deviating for alike in deviating)).difference(*shows)
    if hidden:
        raise InconsistentRecord(path, None, f"the deviating cell {' / '.join(min(hidden))} has no counterexample")


def _check_footer(record: Folded, path: Path) -> None:
    footer = record.footer
    counts = dict.fromkeys(("planned", *OUTCOMES), 0)
    replayed = 0
    for alike in record.alike:
        cases = len(alike.topologies) * len(alike.kinds)
        counts["planned"] += cases
        counts[alike.outcome] += cases
        replayed += cases * (alike.origin == CORPUS)
    for name, count in counts.items():
        if footer.counts[name] != count:
            raise InconsistentRecord(path, None, f"the footer counts {footer.counts[name]} {name}, the cases {count}")
    if replayed != record.header.plan.cases:
        cause = f"{record.header.plan.cases} cases of the corpus were planned, {replayed} ran or are accounted for"
        raise InconsistentRecord(path, None, cause)
    if footer.complete == bool(footer.stopped):
        raise InconsistentRecord(path, None, f"complete is {footer.complete}, but stopped is {footer.stopped!r}")
