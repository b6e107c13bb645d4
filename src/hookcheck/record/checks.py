"""Does a record agree with itself? What a schema cannot say of single lines, said of all of them together.

The same check guards both ways: no record that it refuses is written, and none is read.
"""

from __future__ import annotations

from pathlib import Path

from packaging.version import InvalidVersion, Version

from hookcheck.contract.verdict import CRASHED, RAN, TIMED_OUT
from hookcheck.record.errors import DuplicateCase, InconsistentRecord
from hookcheck.record.model import CORPUS, Record, tally


def check(record: Record, path: Path) -> None:
    """Refuse ``record``, kept in ``path``, where it contradicts itself.

    Raises `DuplicateCase` for a case that is there twice and `InconsistentRecord` for every other contradiction.
    """
    _check_header(record, path)
    _check_cases(record, path)
    _check_counterexamples(record, path)
    _check_footer(record, path)


def _check_header(record: Record, path: Path) -> None:
    version = record.header.torch.version
    try:
        Version(version)
    except InvalidVersion:
        raise InconsistentRecord(path, 1, f"{version!r} is no version of torch") from None


def _check_cases(record: Record, path: Path) -> None:
    plan = record.header.plan
    families, kinds, clauses = set(plan.families), set(plan.kinds), {clause.id for clause in plan.clauses}
    seen: set[tuple[str, str, str, str]] = set()
    for case in record.cases:
        key = (case.family, case.topology, case.kind, case.origin)
        if key in seen:
            raise DuplicateCase(path, None, f"case {' / '.join(key)} is there twice")
        seen.add(key)
        if case.family not in families:
            raise InconsistentRecord(path, None, f"the plan has no family {case.family!r}")
        if case.kind not in kinds:
            raise InconsistentRecord(path, None, f"the plan has no hook kind {case.kind!r}")
        spoken = {*case.judged, *case.unjudged, *(deviation.clause for deviation in case.deviations)}
        if not spoken <= clauses:
            raise InconsistentRecord(path, None, f"the plan has no clause {min(spoken - clauses)!r}")
        if (case.outcome == RAN) == bool(case.reason):
            cause = f"a case with outcome {case.outcome!r} has reason {case.reason!r}"
            raise InconsistentRecord(path, None, f"{' / '.join(key)}: {cause}")


def _check_counterexamples(record: Record, path: Path) -> None:
    shown: set[str] = set()
    deviating = {case.topology for case in record.cases if case.deviations or case.outcome in (CRASHED, TIMED_OUT)}
    for counterexample in record.counterexamples:
        topology = counterexample.topology
        if topology in shown:
            raise InconsistentRecord(path, None, f"the counterexample {topology} is there twice")
        if topology not in deviating:
            raise InconsistentRecord(path, None, f"no case of the topology {topology} deviates or was lost")
        shown.add(topology)
    evident = {
        (deviation.clause, case.family, case.kind)
        for case in record.cases
        if case.topology in shown
        for deviation in case.deviations
        if deviation.told
    }
    for case in record.cases:
        for deviation in case.deviations:
            cell = (deviation.clause, case.family, case.kind)
            if cell not in evident:
                raise InconsistentRecord(path, None, f"the deviating cell {' / '.join(cell)} has no counterexample")


def _check_footer(record: Record, path: Path) -> None:
    footer = record.footer
    counts = tally(record.cases)
    for name, count in counts.items():
        if footer.counts[name] != count:
            raise InconsistentRecord(path, None, f"the footer counts {footer.counts[name]} {name}, the cases {count}")
    replayed = sum(case.origin == CORPUS for case in record.cases)
    if replayed != record.header.plan.cases:
        cause = f"{record.header.plan.cases} cases of the corpus were planned, {replayed} ran or are accounted for"
        raise InconsistentRecord(path, None, cause)
    if footer.complete == bool(footer.stopped):
        raise InconsistentRecord(path, None, f"complete is {footer.complete}, but stopped is {footer.stopped!r}")
