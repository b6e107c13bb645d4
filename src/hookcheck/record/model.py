"""What is a record? Everything that one run of the suite saw, with its environment, as frozen data.

A record speaks of one torch on one device. Its verdicts are derived from its cases, never stored beside them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from hookcheck.contract.verdict import OUTCOMES, CaseResult, Cell, Deviation, cells

SCHEMA = 3
"""Number of the schema that records are written in (``schema.json`` beside this module)."""

SCHEMAS = (2, SCHEMA)
"""Those that are read: records of schema 2 say of no deviation by which relation and at which site it is one."""

CORPUS = "corpus"
"""Origin of the cases that are known beforehand."""


@dataclass(frozen=True)
class PlannedClause:
    """A clause as it stood when the run judged it.

    ``rank`` is its class (promise, pin or unspecified), ``kinds`` are the hook kinds that it speaks of.
    """

    id: str
    rank: str
    statement: str
    since: str
    source: str
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class CorpusFile:
    """Which corpus of a family was replayed: how many topologies, and the digest of the file."""

    count: int
    digest: str


@dataclass(frozen=True)
class Plan:
    """What the run set out to do.

    ``cases`` counts the cases of the corpus, which are known beforehand; those that exploration adds are not.
    """

    profile: str
    seed: int
    families: tuple[str, ...]
    kinds: tuple[str, ...]
    clauses: tuple[PlannedClause, ...]
    corpus: Mapping[str, CorpusFile]
    cases: int

    @property
    def corpus_digest(self) -> str:
        """One word for the corpora of all families: records of one word ran the same networks."""
        text = "".join(f"{family} {file.digest}\n" for family, file in sorted(self.corpus.items()))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Torch:
    """Which torch was under test; ``version`` keeps its local part, ``cuda`` is None for a build without it."""

    version: str
    git: str
    cuda: str | None


@dataclass(frozen=True)
class Header:
    """Under what circumstances the run took place; ``label`` is what the user calls it, or empty."""

    hookcheck: str
    started: str
    environment: Mapping[str, str]
    torch: Torch
    device: str
    plan: Plan
    label: str = ""

    @property
    def build(self) -> str:
        """Which torch it is, among records: ``2.13.0``, ``2.13.0+git123``, or with a label ``2.13.0-patched``."""
        return "-".join(filter(None, [build_version(self.torch.version), self.label]))


@dataclass(frozen=True)
class Counterexample:
    """A deviating topology: its JSON, and the PyTorch source that it is printed as."""

    topology: str
    content: Mapping[str, Any]
    source: str


@dataclass(frozen=True)
class Footer:
    """How the run ended; ``stopped`` says why where it is not ``complete``, ``counts`` are those of `tally`.

    ``explored`` is how many topologies that are not in the corpus were examined as well.
    """

    finished: str
    complete: bool
    stopped: str
    counts: Mapping[str, int]
    explored: int


@dataclass(frozen=True)
class Alike:
    """Cases of one family that came out alike: each of ``topologies`` with each of ``kinds``.

    The other fields are those of a `CaseResult`.
    """

    family: str
    origin: str
    kinds: tuple[str, ...]
    topologies: tuple[str, ...]
    outcome: str
    reason: str
    judged: Mapping[str, int]
    deviations: tuple[Deviation, ...]
    unjudged: Mapping[str, int]

    @cached_property
    def clauses(self) -> frozenset[str]:
        """The clauses that had their say on the cases."""
        return _the(frozenset((*self.judged, *self.unjudged, *(deviation.clause for deviation in self.deviations))))

    @cached_property
    def deviating(self) -> frozenset[tuple[str, str, str]]:
        """The cells in which they deviate: clause, family and hook kind."""
        return self._cells(self.deviations)

    @cached_property
    def worded(self) -> frozenset[tuple[str, str, str]]:
        """Those of the cells `deviating` in which that is put into words."""
        return self._cells(deviation for deviation in self.deviations if deviation.worded)

    def _cells(self, deviations: Iterable[Deviation]) -> frozenset[tuple[str, str, str]]:
        clauses = {deviation.clause for deviation in deviations}
        return _the(frozenset((clause, self.family, kind) for clause in clauses for kind in self.kinds))

    def cases(self) -> Iterator[CaseResult]:
        """The cases one by one."""
        rest = self.origin, self.outcome, self.reason, self.judged, self.deviations, self.unjudged
        for topology in self.topologies:
            for kind in self.kinds:
                yield CaseResult(self.family, topology, kind, *rest)


@cache
def _the(names: frozenset[Any]) -> frozenset[Any]:
    """The one object that stands for all equal sets, so that thousands of them are told apart at a glance."""
    return names


@dataclass(frozen=True)
class Folded:
    """A record as its file holds it: of cases that came out alike, what became of them is there once."""

    header: Header
    alike: tuple[Alike, ...]
    counterexamples: tuple[Counterexample, ...]
    footer: Footer


@dataclass(frozen=True)
class Record:
    """Everything that one run saw."""

    header: Header
    cases: tuple[CaseResult, ...]
    counterexamples: tuple[Counterexample, ...]
    footer: Footer

    def folded(self) -> Folded:
        """The record with each of its cases by itself."""
        alike = (
            Alike(c.family, c.origin, (c.kind,), (c.topology,), c.outcome, c.reason, c.judged, c.deviations, c.unjudged)
            for c in self.cases
        )
        return Folded(self.header, tuple(alike), self.counterexamples, self.footer)

    def cells(self) -> list[Cell]:
        """The verdict of every cell that the cases add up to."""
        clauses = self.header.plan.clauses
        return cells(self.cases, [clause.id for clause in clauses], {clause.id: clause.kinds for clause in clauses})


def ordered(cases: Iterable[CaseResult], plan: Plan) -> tuple[CaseResult, ...]:
    """``cases`` in the order of ``plan``: family, hook kind, origin, topology; what the plan lacks comes last."""
    families = {family: place for place, family in enumerate(plan.families)}
    kinds = {kind: place for place, kind in enumerate(plan.kinds)}

    def place(case: CaseResult) -> tuple[int, int, str, str, str, str]:
        known = families.get(case.family, len(families)), kinds.get(case.kind, len(kinds))
        return (*known, case.origin, case.topology, case.family, case.kind)

    return tuple(sorted(cases, key=place))


def tally(cases: Iterable[CaseResult]) -> dict[str, int]:
    """How many cases there are, in all (``planned``) and by outcome."""
    counts = dict.fromkeys(("planned", *OUTCOMES), 0)
    for case in cases:
        counts["planned"] += 1
        counts[case.outcome] += 1
    return counts


def record_name(torch_version: str, device: str, label: str = "") -> str:
    """The name of the file that keeps the record of one torch on one device.

    >>> record_name("2.13.0+cpu", "cpu")
    'torch-2.13.0-cpu.jsonl.gz'
    >>> record_name("2.14.0a0+git123", "cpu", "patched")
    'torch-2.14.0a0+git123-patched-cpu.jsonl.gz'
    """
    name = "-".join(filter(None, [build_version(torch_version), label]))
    return f"torch-{name}-{device}.jsonl.gz"


def public_version(torch_version: str) -> str:
    """``torch_version`` without its local part, which names the build and not the release."""
    return torch_version.split("+", maxsplit=1)[0]


_RELEASED = re.compile(r"(cpu|cu\d+|rocm\d|xpu)\b.*", re.ASCII)
"""The local part of a release's version: for which device it was built."""


def build_version(torch_version: str) -> str:
    """``torch_version`` without its local part where that is one of a release: other builds are other torches.

    >>> build_version("2.13.0+cu126"), build_version("2.14.0a0+git123")
    ('2.13.0', '2.14.0a0+git123')
    """
    public, _, local = torch_version.partition("+")
    return public if _RELEASED.fullmatch(local) else torch_version
