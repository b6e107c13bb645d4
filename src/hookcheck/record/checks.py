"""Does a record agree with itself? What a schema cannot say of single lines, said of all of them together.

The same check guards both ways: no record that it refuses is written, and none is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

from packaging.version import InvalidVersion, Version

from hookcheck.contract.verdict import CRASHED, OUTCOMES, RAN, TIMED_OUT
from hookcheck.record.errors import DuplicateCase, InconsistentRecord
from hookcheck.record.model import CORPUS, Folded


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
    topologies: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for alike in record.alike:
        topologies.setdefault((alike.family, alike.origin, alike.kinds), []).extend(alike.topologies)
    # thousands of lines share what is looked at here, so each is looked at once
    unplanned = {
        "family": {family for family, _, _ in topologies} - families,
        "hook kind": set[str]().union(*(kinds for _, _, kinds in topologies)) - kinds,
        "clause": frozenset[str]().union(*{alike.clauses for alike in record.alike}) - clauses,
    }
    for what, names in unplanned.items():
        if names:
            raise InconsistentRecord(path, None, f"the plan has no {what} {min(names)!r}")
    for outcome, reason in {(alike.outcome, alike.reason) for alike in record.alike}:
        if (outcome == RAN) == bool(reason):
            raise InconsistentRecord(path, None, f"a case with outcome {outcome!r} has reason {reason!r}")
    _refuse_repeated(topologies, path)


def _refuse_repeated(topologies: Mapping[tuple[str, str, tuple[str, ...]], Collection[str]], path: Path) -> None:
    """Refuse ``topologies``, by family, origin and hook kinds, where a hook kind has one of them twice."""
    seen: dict[tuple[str, str, str], set[str]] = {}
    for (family, origin, kinds), those in topologies.items():
        for kind in kinds:
            known = seen.setdefault((family, kind, origin), set())
            count = len(known) + len(those)
            known.update(those)
            if len(known) != count:
                every = (
                    t for (f, o, k), ts in topologies.items() if (f, o) == (family, origin) and kind in k for t in ts
                )
                key = " / ".join((family, Counter(every).most_common(1)[0][0], kind, origin))
                raise DuplicateCase(path, None, f"case {key} is there twice")


def _check_counterexamples(record: Folded, path: Path) -> None:
    shown: set[str] = set()
    for counterexample in record.counterexamples:
        if counterexample.topology in shown:
            raise InconsistentRecord(path, None, f"the counterexample {counterexample.topology} is there twice")
        shown.add(counterexample.topology)
    unfounded, cells, shows = set(shown), set[_Cells](), set[_Cells]()
    for alike in record.alike:
        if alike.deviations or alike.outcome in (CRASHED, TIMED_OUT):
            here = shown.intersection(alike.topologies)
            unfounded -= here
            if alike.deviations:
                cells.add(alike.deviating)
                shows.update([alike.worded] if here else ())
    if unfounded:
        raise InconsistentRecord(path, None, f"no case of the topology {min(unfounded)} deviates or was lost")
    hidden = set[tuple[str, str, str]]().union(*cells).difference(*shows)
    if hidden:
        raise InconsistentRecord(path, None, f"the deviating cell {' / '.join(min(hidden))} has no counterexample")


_Cells = frozenset[tuple[str, str, str]]
"""Cells by clause, family and hook kind."""


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
