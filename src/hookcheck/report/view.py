"""What pages show: rows of promises by release, changes between releases, and causes with their drawings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hookcheck.contract.clause import CLAIM
from hookcheck.contract.ledger import Entry, varying
from hookcheck.contract.verdict import PROGRAM, RAN, VERDICTS
from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import KINDS
from hookcheck.record.changes import MENDED, NEWLY_OFFERED, NO_LONGER_OFFERED
from hookcheck.record.compare import Comparison, Group
from hookcheck.record.model import PlannedClause
from hookcheck.report.archive import Archive, ArchivedRun, SeenResult
from hookcheck.report.causes import Cause, causes
from hookcheck.report.diagram import IN, OUT, diagram
from hookcheck.report.layout import Placed, place
from hookcheck.report.prose import between
from hookcheck.report.scopes import chapters
from hookcheck.report.signs import BY_COST, SIGNS, Sign
from hookcheck.report.standing import (
    KindStanding,
    ShownVerdict,
    Span,
    is_wrong,
    says_something,
    spans,
    standings,
    verdict,
    worst,
)
from hookcheck.topology.codec import TopologyError, decode

Reproduce = Callable[[Cause], str]
"""The script that shows a cause and needs torch alone; empty where there is none."""


@dataclass(frozen=True)
class Row:
    """One promise with one hook kind, across releases."""

    clause: PlannedClause
    kind: str
    spans: tuple[Span, ...]

    @property
    def newest(self) -> ShownVerdict:
        """How it stands on the newest torch."""
        return self.spans[0].verdict

    @property
    def steady(self) -> bool:
        """Whether nothing has ever been wrong with it where anything was judged, and something was."""
        return not any(is_wrong(s.verdict) for s in self.spans) and any(says_something(s.verdict) for s in self.spans)

    @property
    def silent(self) -> bool:
        """Whether nothing was judged on any torch."""
        return not any(says_something(span.verdict) for span in self.spans)


@dataclass(frozen=True)
class UnrunAccount:
    """``cases`` cases of a run that end alike and for one reason without having run."""

    outcome: str
    reason: str
    kinds: tuple[str, ...]
    cases: int


@dataclass(frozen=True)
class SiteView:
    """Everything that pages draw on: records, and what the ledger and the scripts say of causes."""

    archive: Archive
    entries: Mapping[str, Entry]
    reproduce: Reproduce = lambda cause: ""

    @cached_property
    def varying(self) -> frozenset[str]:
        """The entries of the ledger that show now and then."""
        return varying(self.entries.values())

    @cached_property
    def standings(self) -> Mapping[tuple[str, str], Sequence[KindStanding]]:
        """How every promise stands with every hook kind."""
        return standings(self.archive)

    @cached_property
    def verdicts(self) -> Mapping[tuple[str, str], Sequence[ShownVerdict]]:
        """What is shown of `standings`."""
        clauses = self.archive.clauses
        return {key: [verdict(clauses[key[0]], s) for s in those] for key, those in self.standings.items()}

    @cached_property
    def causes(self) -> Mapping[str, Sequence[Cause]]:
        """Why promises deviate, by clause."""
        return causes(self.archive)

    @cached_property
    def clauses_of(self) -> Mapping[str, Sequence[PlannedClause]]:
        """The clauses that speak of each hook kind or stand in each chapter."""
        return {kind: [c for c in self.archive.clauses.values() if kind in c.kinds] for kind in self.archive.kinds}

    @cached_property
    def hook_kinds(self) -> tuple[str, ...]:
        """The hook kinds, without chapters of programs."""
        return tuple(kind for kind in KINDS if kind in self.archive.kinds)

    @cached_property
    def chapters(self) -> tuple[str, ...]:
        """The chapters of programs, by name."""
        return tuple(sorted(kind for kind in self.archive.kinds if kind not in KINDS))

    def rows(self, kind: str) -> list[Row]:
        """The rows of a hook kind with its chapters, or of a chapter: what is wrong on the newest torch first."""
        rows = [
            Row(clause, part, spans(enumerate(self.verdicts[clause.id, part])))
            for part in (kind, *chapters(kind))
            for clause in self.clauses_of.get(part, ())
        ]
        return sorted(rows, key=lambda row: SEVERITY[row.newest.sign])

    def across(self, clause: PlannedClause) -> list[Row]:
        """The rows of a clause, one for each hook kind that it speaks of."""
        those = [kind for kind in clause.kinds if (clause.id, kind) in self.verdicts]
        return [Row(clause, kind, spans(enumerate(self.verdicts[clause.id, kind]))) for kind in those]

    def now(self, clause: PlannedClause) -> ShownVerdict:
        """How a clause stands on the newest torch with the hook kind that it stands worst with."""
        return worst(row.newest for row in self.across(clause))

    def letters(self, clause: PlannedClause) -> str:
        """How a clause stands with every hook kind on every torch, for a page's script."""
        return ";".join(
            f"{kind}={''.join(shown.sign.letter for shown in self.verdicts[clause.id, kind])}"
            for kind in clause.kinds
            if (clause.id, kind) in self.verdicts
        )

    def name(self, run: ArchivedRun) -> str:
        """How sentences speak of a run: its device is said where records are of several."""
        return f"{run.version} ({run.device})" if self._several_devices else run.version

    @cached_property
    def _several_devices(self) -> bool:
        return len({run.device for run in self.archive.runs}) > 1

    def names(self, places: Iterable[int]) -> list[str]:
        """The names of the runs at ``places``."""
        return [self.name(self.archive.runs[place]) for place in places]

    def ranges(self, places: Iterable[int]) -> list[str]:
        """The names of the runs at ``places``, those that are neighbours on a device as one range."""
        groups: list[list[int]] = []
        for run in sorted(places):
            if groups and self.archive.previous(groups[-1][-1]) == run:
                groups[-1].append(run)
            else:
                groups.append([run])
        return [between(self.names(neighbours)) for neighbours in groups]

    def accounts(self, place: int) -> list[UnrunAccount]:
        """What did not run, and why: crashes first, then by the number of cases."""
        counted: Counter[tuple[str, str]] = Counter()
        kinds: dict[tuple[str, str], dict[str, None]] = {}
        for sighting in self._not_ran:
            end = sighting.result.outcome, sighting.result.reason
            if sighting.cases[place]:
                counted[end] += sighting.cases[place]
                kinds.setdefault(end, {})[sighting.kind] = None
        accounts = [UnrunAccount(*key, tuple(kinds[key]), cases) for key, cases in counted.items()]
        return sorted(accounts, key=lambda a: (VERDICTS.index(a.outcome), -a.cases, a.reason))

    @cached_property
    def _not_ran(self) -> list[SeenResult]:
        return [sighting for sighting in self.archive.sightings if sighting.result.outcome != RAN]

    def drawing(self, cause: Cause) -> Placed | None:
        """The network of a cause as a drawing, with the wrong gradient marked; None of a program or a large network."""
        network = cause.example.network
        if network is None or not network.content or cause.example.family == PROGRAM:
            return None
        try:
            drawn = diagram(decode(network.content))
        except TopologyError:  # another hookcheck wrote it
            return None
        statement = self.archive.clauses[cause.clause].statement
        side = IN if "grad_input" in statement else OUT if "grad_output" in statement else ""
        return place(drawn, cause.example.deviation.subject, side) if drawn else None

    def script(self, cause: Cause) -> str:
        """The reproduction of a cause; empty where none can be written."""
        try:
            return self.reproduce(cause)
        except HookcheckError:
            return ""


SEVERITY: Mapping[Sign, int] = {sign: number for number, sign in enumerate(SIGNS)}
"""What asks for most attention first."""


def command(cause: Cause) -> str:
    """What to type for the script that shows a cause."""
    example = cause.example
    if example.family == PROGRAM:
        return f"hookcheck repro {cause.clause}"
    return f"hookcheck repro {example.topology} --clause {cause.clause} --kind {example.kind}"


@dataclass(frozen=True)
class Changes:
    """A comparison in the order of its readers: what is worse, what is mended, what else, and what came and went."""

    comparison: Comparison
    worse: tuple[Group, ...]
    mended: tuple[Group, ...]
    other: tuple[Group, ...]
    offered: tuple[Group, ...]
    withdrawn: tuple[Group, ...]

    @property
    def silent(self) -> int:
        """How many causes are worse without anything that says so."""
        return sum(group.cause.cost in ("silent", "not called", "called otherwise") for group in self.worse)


def changes(comparison: Comparison) -> Changes:
    """The groups of ``comparison``, sorted out."""
    parts: dict[str, list[Group]] = {part: [] for part in ("worse", "mended", "other", "offered", "withdrawn")}
    for group in comparison.groups:
        cause = group.cause
        otherwise = "worse" if cause.worse else "other"
        parts[_PARTS.get(cause.status, otherwise)].append(group)
    return Changes(comparison, **{part: tuple(groups) for part, groups in parts.items()})


_PARTS = {MENDED: "mended", NEWLY_OFFERED: "offered", NO_LONGER_OFFERED: "withdrawn"}
"""Where groups go by what has become of them; the others are worse, or something else."""


def sign_of(group: Group) -> Sign | None:
    """The sign of what has changed; None where no deviation is concerned."""
    return BY_COST.get(group.cause.cost)


def is_claim(clause: PlannedClause) -> bool:
    """Whether it is a claim of tutorials."""
    return clause.rank == CLAIM
