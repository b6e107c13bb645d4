"""May one upgrade torch? The answer for some hook kinds, drawn from the comparison of two records.

The questions are those that maintainers of libraries ask, in their order: the verdict, what changed and since when,
what to do for each, and last what was not run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from hookcheck.contract.clause import CLAIM, PIN, PROMISE
from hookcheck.contract.verdict import CRASHED, PROGRAM, RAN, TIMED_OUT
from hookcheck.record.changes import DISAPPEARED, MENDED, NEWLY_OFFERED, NO_LONGER_OFFERED
from hookcheck.record.compare import Comparison, Group
from hookcheck.record.model import Header, PlannedClause, Record, public_version
from hookcheck.report.changes import cut, sentence
from hookcheck.report.prose import many

SAFE, NOTES, NOT_SAFE, CANNOT_TELL = "safe", "safe with notes", "do not upgrade", "cannot tell"
GRAVE = ("silent", "not called", "called otherwise", "exception")
"""Classes of cost that forbid an upgrade where they break a promise: wrong results, or a program that ends."""

FILTER, ADAPT, REPORT, DECIDE = "filter", "adapt", "report", "decide"
"""What there is to do: hide a warning that is no news, change code to what torch does, tell upstream, or choose."""

CONTEXTS: Mapping[str, tuple[str, ...]] = {
    "compile": ("torch-compile", "torch-compile-backward"),
    "checkpoint": ("checkpointing", "checkpointed-gradients", "recomputation"),
    "parallel": ("parallel", "sharded"),
}
"""The contexts in which programs run hooks, by the chapters that they stand in; all else is eager."""


@dataclass(frozen=True)
class Change:
    """One difference that matters to the upgrade, worse or not.

    ``kind`` says whether it breaks a promise, a claim or a pin; ``since`` is empty where no record tells when. With
    ``again`` it is a program that deviated before for the same reason, if in another fact: threads that race show it in
    this way or that.
    """

    number: int
    group: Group
    text: str
    kind: str
    since: str
    do: str
    code: str
    link: str
    repro: str
    again: bool

    @property
    def grave(self) -> bool:
        """Whether it alone forbids the upgrade."""
        cause = self.group.cause
        ended = cause.reason.startswith((CRASHED, TIMED_OUT)) or cause.status == NO_LONGER_OFFERED
        return cause.worse and (ended or (self.kind == PROMISE and cause.cost in GRAVE and not self.again))


@dataclass(frozen=True)
class OwnChange:
    """What is otherwise for hooks on the user's own model, in a sentence; ``cost`` is that of its class."""

    worse: bool
    cost: str
    text: str


@dataclass(frozen=True)
class QuestionAnswer:
    """A question with its answer: sentences."""

    question: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Upgrade:
    """The whole answer; ``counts`` has, for each hook kind and context, how many cases ran in both and are worse.

    ``model_changes`` is what is otherwise on the user's own model; None where none was run.
    """

    before: Header
    after: Header
    kinds: tuple[str, ...]
    verdict: str
    changes: tuple[Change, ...]
    counts: Mapping[str, Mapping[str, tuple[int, int]]]
    answers: tuple[QuestionAnswer, ...]
    compared: int
    model_changes: tuple[OwnChange, ...] | None = None


@dataclass(frozen=True)
class Known:
    """What is known beside the two records.

    ``statements`` are rows of the support data (`hookcheck.report.support`), ``ledger`` the entries by id, ``hooks``
    the hook kinds that each program registers, by its id.
    """

    statements: Sequence[Mapping[str, Any]]
    ledger: Mapping[str, Mapping[str, Any]]
    hooks: Mapping[str, Sequence[str]]


def upgrade(
    before: Record,
    after: Record,
    comparison: Comparison,
    kinds: Sequence[str],
    known: Known,
    model_changes: tuple[OwnChange, ...] | None = None,
) -> Upgrade:
    """The answer for the hook kinds ``kinds`` (all, where none is named), to which ``comparison`` is limited.

    ``model_changes`` is what is otherwise on the user's own model, where one was run.
    """
    changes = tuple(_changes(before, comparison, known))
    counts = _counts(before, after, comparison, kinds, known.hooks)
    return Upgrade(
        before=before.header,
        after=after.header,
        kinds=tuple(kinds),
        verdict=verdict(comparison, changes, model_changes or ()),
        changes=changes,
        counts=counts,
        answers=tuple(_answers(before, after, comparison, changes, kinds, known, model_changes)),
        compared=comparison.compared,
        model_changes=model_changes,
    )


def verdict(comparison: Comparison, changes: Iterable[Change], model_changes: Iterable[OwnChange] = ()) -> str:
    """Safe only where all that the earlier record answers for was looked at, and nothing is worse."""
    worse = [change for change in changes if change.group.cause.worse]
    worse_own = [change for change in model_changes if change.worse]
    if any(change.grave for change in worse) or any(change.cost in GRAVE for change in worse_own):
        return NOT_SAFE
    if not comparison.conclusive:
        return CANNOT_TELL
    return NOTES if worse or worse_own else SAFE


def _changes(before: Record, comparison: Comparison, known: Known) -> Iterator[Change]:
    clauses = {clause.id: clause for clause in comparison.after.plan.clauses}
    programs = {(case.topology, d.ledger) for case in before.cases if case.family == PROGRAM for d in case.deviations}
    warned = {(g.cause.gap, g.cause.ledger): g.example.after for g in reversed(comparison.groups) if g.example.expected}
    groups = [group for group in comparison.groups if group.cause.status not in (NEWLY_OFFERED, MENDED)]
    groups = sorted(groups, key=lambda group: not group.cause.worse)
    for number, group in enumerate(groups, start=1):
        cause = group.cause
        clause = clauses.get(cause.clause)
        entry = known.ledger.get(cause.ledger or "", {})
        repro = _repro(group)
        again = bool(cause.ledger) and (group.example.topology, cause.ledger) in programs
        do, code = _action(group, clause, again, warned.get((cause.gap, cause.ledger), ""))
        yield Change(
            number=number,
            group=group,
            text=sentence(group, clauses),
            kind=clause.rank if clause else "",
            since=_since(comparison, group, known.statements),
            do=do,
            code=code,
            link=entry.get("link", ""),
            repro=repro,
            again=again,
        )


def _repro(group: Group) -> str:
    example, clause = group.example, group.cause.clause
    if example.family == PROGRAM:
        return f"hookcheck repro {example.topology}"
    return f"hookcheck repro {example.topology} --clause {clause} --kind {example.kind}" if clause else ""


def _action(group: Group, clause: PlannedClause | None, again: bool, warning: str) -> tuple[str, str]:
    """What there is to do, and the code for it where it can be code."""
    cause = group.cause
    if cause.gap == "new warning" and warning:
        return FILTER, warning_filter(warning)
    if clause is not None and clause.rank == PROMISE and not cause.ledger:
        return REPORT, ""
    if cause.cost in GRAVE and not again and (clause is None or clause.rank == PROMISE):
        return ADAPT, ""
    return DECIDE, ""


_BEGINNING = 50
"""How many characters of a warning's text tell it from others, and fit a terminal of 80 columns."""


def warning_filter(observed: str) -> str:
    """The Python that hides a warning, by its class where Python has it, and the beginning of its text.

    >>> print(warning_filter("UserWarning: Full backward hook is firing when. See more"))
    warnings.filterwarnings(
        "ignore",
        message="Full backward hook is firing when",
        category=UserWarning,
    )
    """
    category, _, text = observed.partition(": ")
    known = category in ("UserWarning", "FutureWarning", "DeprecationWarning", "RuntimeWarning")
    beginning = re.split(r"[.\n…]", text if known else observed)[0].strip()
    if len(beginning) > _BEGINNING:
        beginning = beginning[:_BEGINNING].rpartition(" ")[0]
    of_class = f"    category={category},\n" if known else ""
    pattern = json.dumps(re.escape(beginning).replace("\\ ", " "), ensure_ascii=False)
    return f'warnings.filterwarnings(\n    "ignore",\n    message={pattern},\n{of_class})'


def _since(comparison: Comparison, group: Group, statements: Iterable[Mapping[str, Any]]) -> str:
    """The release since which the records have the cause of a group, between the two that are compared."""
    first, last = (Version(public_version(header.torch.version)) for header in (comparison.before, comparison.after))
    for row in statements:
        if (
            (row["clause"], row["kind"]) == (group.cause.clause, group.example.kind)
            and first < Version(row["since"]) <= last
            and any((c["gap"], c["ledger"]) == (group.cause.gap, group.cause.ledger) for c in row["causes"])
        ):
            return f"since {row['since']}, not yet in {row['otherwise_before']}"
    return ""


def _context(family: str, kind: str) -> str:
    if family == "context":
        return "inside another context"
    return next((name for name, chapters in CONTEXTS.items() if kind in chapters), "eager")


def _counts(
    before: Record, after: Record, comparison: Comparison, kinds: Sequence[str], hooks: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, tuple[int, int]]]:
    ran = {(c.family, c.topology, c.kind) for c in before.cases if c.outcome == RAN}
    ran &= {(c.family, c.topology, c.kind) for c in after.cases if c.outcome == RAN}
    names = kinds or sorted({kind for family, _, kind in ran if family != PROGRAM})
    contexts = ("eager", "inside another context", *CONTEXTS)
    counted = {name: dict.fromkeys(contexts, 0) for name in names}
    for family, topology, kind in ran:
        for name in hooks.get(topology, ()) if family == PROGRAM else (kind,):
            if name in counted:
                counted[name][_context(family, kind)] += 1
    worse = {name: dict.fromkeys(contexts, 0) for name in names}
    for group in comparison.groups:
        if group.cause.worse:
            for kind in group.kinds:
                for name in hooks.get(group.example.topology, ()) if kind not in names else (kind,):
                    if name in worse:
                        family = "context" if group.families == ("context",) else group.families[0]
                        worse[name][_context(family, kind)] += 1
    return {name: {c: (counted[name][c], worse[name][c]) for c in contexts} for name in names}


_Picks = Callable[[Group], bool]


def _gap(*gaps: str) -> _Picks:
    return lambda group: group.cause.gap in gaps


def _chapter(*words: str) -> _Picks:
    return lambda group: any(word in kind for kind in group.kinds for word in words)


_QUESTIONS: tuple[tuple[str, _Picks], ...] = (
    (
        "Do hooks that only look on still leave outputs, gradients, None and memory as they are?",
        lambda group: group.cause.clause.startswith("OB-") and group.cause.gap != "new warning",
    ),
    ("Does every hook still fire as often as before?", _gap("not fired", "fired too often")),
    ("Is the order of hooks as before?", _gap("wrong order")),
    ("Do handles still remove, and is nothing left behind?", lambda g: _gap("kept alive")(g) or _chapter("handles")(g)),
    (
        "Do in-place operations fail and work as before?",
        lambda group: ("inplace" in group.families or _chapter("in-place")(group)) and group.cause.cost != "warning",
    ),
    (
        "Are arguments as before: tuples, places of None, None against zero, keywords?",
        _gap(
            *("wrong shape", "wrong slots", "missing entries", "extra entries", "wrong arguments"),
            *("None instead of a gradient", "a gradient instead of None", "parameter gradients mixed in"),
        ),
    ),
    ("Does `python -W error` still run: are there no new warnings?", _gap("new warning")),
)
"""Questions whose answer is a selection of the changes."""


def _answers(
    before: Record,
    after: Record,
    comparison: Comparison,
    changes: Sequence[Change],
    kinds: Sequence[str],
    known: Known,
    model_changes: tuple[OwnChange, ...] | None,
) -> Iterator[QuestionAnswer]:
    for question, picks in _QUESTIONS:
        hits = [change for change in changes if picks(change.group)]
        worse = [change for change in hits if change.group.cause.worse]
        sentences = [
            f"{'No' if change in worse else 'Otherwise, not worse'}: change {change.number}." for change in hits
        ]
        yield QuestionAnswer(question, tuple(sentences) or ("Yes, in all that ran in both.",))
    yield QuestionAnswer("What is mended?", tuple(_mended(comparison)) or ("Nothing that the records tell.",))
    yield QuestionAnswer("What changes next?", tuple(_next(comparison, kinds, known)))
    yield QuestionAnswer("What was not run, and why?", tuple(_not_run(after, comparison, model_changes is not None)))
    yield QuestionAnswer("What was deliberately not judged?", tuple(_not_judged(after)))


def _mended(comparison: Comparison) -> Iterator[str]:
    clauses = {clause.id: clause for clause in comparison.after.plan.clauses}
    for group in comparison.groups:
        if group.cause.status == MENDED:
            yield cut(sentence(group, clauses))


def _next(comparison: Comparison, kinds: Sequence[str], known: Known) -> Iterator[str]:
    """What newer releases that have records do otherwise; announcements that nothing has run are nowhere in them."""
    last = Version(public_version(comparison.after.torch.version))
    newer = [
        row
        for row in known.statements
        if Version(row["since"]) > last
        and row["otherwise_before"]
        and row["state"] not in ("holds", "unknown")
        and (not kinds or row["kind"] in kinds or set(known.hooks.get(row["clause"], ())) & set(kinds))
    ]
    for row in newer:
        yield f"{row['clause']} with {row['kind']}, since {row['since']}: {row['state']}; {cut(row['note'])}"
    if not newer:
        yield "No newer release that has been run differs in what holds."


def _not_run(after: Record, comparison: Comparison, checked: bool) -> Iterator[str]:
    for item in comparison.left_out:
        where = f": {many(item.cases, 'case')} of {', '.join(item.families[:3])}" if item.cases else ""
        more = f" and {len(item.families) - 3} more families" if len(item.families) > 3 else ""
        yield f"{item.why}{where}{more}"
    for group in comparison.groups:
        if group.cause.status == DISAPPEARED:
            yield f"disappeared: {group.cause.reason} ({many(group.cases, 'case')})"
    ran, kinds = after.footer.counts[RAN], after.header.plan.kinds
    yield (
        f"Beside {ran:,} cases of a fixed corpus, {after.footer.explored:,} new networks were tried on "
        f"{public_version(after.header.torch.version)}, over {len(kinds)} hook kinds and chapters."
    )
    yield (
        f"Both runs are on {after.header.device}; other devices were not run."
        + ("" if checked else " Your own model was not run either: `--check package.module:make` does.")
    )


def _not_judged(after: Record) -> Iterator[str]:
    unspecified = [clause.id for clause in after.header.plan.clauses if clause.rank not in (PROMISE, PIN, CLAIM)]
    yield f"{len(unspecified)} clauses that the documents refuse to promise: {', '.join(unspecified) or 'none'}."
    counted: dict[str, int] = {}
    for case in after.cases:
        for clause in case.unjudged:
            counted[clause] = counted.get(clause, 0) + 1
    for clause, cases in sorted(counted.items()):
        yield f"{clause} in {many(cases, 'case')}: nobody can foretell what is right."
