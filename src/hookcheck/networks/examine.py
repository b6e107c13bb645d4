"""What becomes of one topology? It is run once without hooks and once a hook kind, worked out once, and judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import torch

from hookcheck.contract.clause import Clause, Subject
from hookcheck.contract.evidence import Evidence
from hookcheck.contract.explaining import explained, unexplained
from hookcheck.contract.ledger import Ledger
from hookcheck.contract.verdict import NOT_OFFERED, NOT_RUN, RAN, CaseResult
from hookcheck.hooks.acts import NO_ACTS
from hookcheck.hooks.kinds import KINDS, HookKind
from hookcheck.networks.case import Case
from hookcheck.networks.judge import Judgements, judge
from hookcheck.oracle.expected import Expected
from hookcheck.probe.boundaries import boundaries
from hookcheck.probe.compiling import compiles
from hookcheck.probe.observation import Observation, same_run
from hookcheck.probe.run import lacking, observe, unavailable, unsafe
from hookcheck.releases.numbers import release
from hookcheck.topology.codec import identify
from hookcheck.topology.model import Topology, writes
from hookcheck.topology.needs import about
from hookcheck.topology.primitive import Array
from hookcheck.topology.values import values


def examine(
    topology: Topology,
    family: str,
    kinds: Iterable[str],
    clauses: Iterable[Clause],
    ledger: Ledger,
    device: str = "cpu",
    origin: str = "corpus",
    evidence: Evidence | None = None,
    ran: Callable[[], None] = lambda: None,
) -> Iterator[CaseResult]:
    """One result for each hook kind, in order; torch runs once for each and once without hooks.

    ``evidence`` chooses the known deviations that are put into words; None puts all of them. Torch has run with every
    kind before anything is judged, since a processor that goes to and fro between the two is the slower for it; ``ran``
    is called after each kind.
    """
    id, spoken_of, kinds = identify(topology), _by_kind(tuple(clauses)), tuple(kinds)
    if about(topology) not in ("any", device):
        yield from (
            CaseResult(family, id, kind, origin, NOT_RUN, f"the topology is about {about(topology)}") for kind in kinds
        )
        return
    unable = unavailable(topology, None)
    reasons = {kind: unable or lacking(kind) or unsafe(kind, writes(topology)) for kind in kinds}
    numbers = values(topology)
    plain = None if all(reasons.values()) else observe(topology, numbers, None, device)
    seen: dict[str, Observation] = {}
    elsewhere: dict[str, Observation] = {}
    for kind in kinds:
        if not reasons[kind]:
            seen[kind] = observe(topology, numbers, kind, device)
            if device != "cpu":
                elsewhere[kind] = observe(topology, numbers, kind)
        ran()
    worked_out = {NO_ACTS: Expected(topology, numbers, release=release(torch.__version__), device=device)}
    done: list[tuple[tuple[Clause, ...], Case, list[Judgements]]] = []
    beside = Beside(topology, numbers, device)
    for kind in kinds:
        if plain is None or reasons[kind]:
            yield CaseResult(family, id, kind, origin, NOT_OFFERED, reasons[kind])
            continue
        acts = KINDS[kind].acts
        if acts not in worked_out:
            worked_out[acts] = worked_out[NO_ACTS].acting(acts)
        expected = worked_out[acts]
        spoken = spoken_of[kind] if expected.worked_out else ()
        first = Case(topology, KINDS[kind], device, expected, seen[kind], plain, elsewhere=elsewhere.get(kind))
        # What is observed alike is judged alike: a global hook mostly sees what the same hook on each module sees.
        judgements = next((known for of, other, known in done if of is spoken and _seen_alike(other, first)), None)
        if judgements is None:
            judgements = []
            done.append((spoken, first, judgements))
        for look, case in enumerate(looks(first, beside)):
            if look == len(judgements):
                judgements.append(judge(case, () if look and expected.overflows else spoken))
            judged, unjudged, findings = judgements[look]
            deviations = explained(topology, family, kind, findings, ledger, evidence)
            if not any(unexplained(deviations)):
                break
        yield CaseResult(family, id, kind, origin, RAN, "", judged, deviations, unjudged)


def _seen_alike(a: Case, b: Case) -> bool:
    elsewhere = a.elsewhere is b.elsewhere or (a.elsewhere and b.elsewhere and same_run(a.elsewhere, b.elsewhere))
    return bool(elsewhere) and same_run(a.observed, b.observed)


@dataclass(frozen=True, eq=False)
class Beside:
    """What a second look at a topology needs beside the runs: one with `boundaries` of our own, made when asked for."""

    topology: Topology
    numbers: Mapping[str, Array]
    device: str

    def of(self, kind: HookKind) -> Observation | None:
        """That run, for hooks that have such boundaries and act on nothing; torch.compile would trace them."""
        bounded = kind.variant == "full" and kind.observes and not compiles(self.topology)
        return self._bounded if bounded else None

    @cached_property
    def _bounded(self) -> Observation:
        return observe(self.topology, self.numbers, None, self.device, boundaries)


def looks(case: Case, beside: Beside) -> Iterator[Case]:
    """The case as it is looked at until all in it is explained: as it is; beside a run with boundaries of our own, if
    there can be one; and with what rounding does to this very network, which takes a dozen oracles more."""
    yield case
    bounded = beside.of(case.kind)
    if bounded is not None:
        yield replace(case, bounded=bounded)
    yield replace(case, bounded=bounded, measured=True)


@lru_cache(maxsize=8)
def _by_kind(clauses: tuple[Clause, ...]) -> dict[str, tuple[Clause, ...]]:
    """Those of ``clauses`` that speak of what hooks get on a topology, by hook kind; one tuple for equal ones."""
    about = [clause for clause in clauses if clause.subject is not Subject.PROGRAM]
    spoken_of = {kind: tuple(clause for clause in about if kind in clause.kinds) for kind in KINDS}
    one = {spoken: spoken for spoken in spoken_of.values()}
    return {kind: one[spoken] for kind, spoken in spoken_of.items()}
