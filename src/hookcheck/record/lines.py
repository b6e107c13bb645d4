"""How does a record look as JSON? Each part of a record to the object of its line, and back.

The functions that read take objects that the schema has passed.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from hookcheck.contract.site import Site
from hookcheck.contract.verdict import CaseResult, Deviation
from hookcheck.record.model import SCHEMA, Alike, CorpusFile, Counterexample, Footer, Header, Plan, PlannedClause, Torch

Line = dict[str, Any]


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: Mapping[str, Any]) -> str:
    """``value`` as JSON on one line, the same text for equal values; NaN and infinities are refused (ValueError)."""
    return _ENCODER.encode(value)


def header_line(header: Header) -> Line:
    """The object of a header's line."""
    plan = header.plan
    return {
        "type": "header",
        "schema": SCHEMA,
        "hookcheck": header.hookcheck,
        "started": header.started,
        "environment": dict(header.environment),
        "torch": {"version": header.torch.version, "git": header.torch.git, "cuda": header.torch.cuda},
        "device": header.device,
        **({"label": header.label} if header.label else {}),
        "plan": {
            "profile": plan.profile,
            "seed": plan.seed,
            "families": list(plan.families),
            "kinds": list(plan.kinds),
            "clauses": [
                {
                    "id": clause.id,
                    "class": clause.rank,
                    "statement": clause.statement,
                    "since": clause.since,
                    "source": clause.source,
                    "kinds": list(clause.kinds),
                }
                for clause in plan.clauses
            ],
            "corpus": {name: {"count": file.count, "digest": file.digest} for name, file in plan.corpus.items()},
            "cases": plan.cases,
        },
    }


def header_of(line: Line) -> Header:
    """The header that ``line`` says."""
    plan = line["plan"]
    clauses = tuple(
        PlannedClause(
            id=clause["id"],
            rank=clause["class"],
            statement=clause["statement"],
            since=clause["since"],
            source=clause["source"],
            kinds=tuple(clause["kinds"]),
        )
        for clause in plan["clauses"]
    )
    return Header(
        hookcheck=line["hookcheck"],
        started=line["started"],
        environment=line["environment"],
        torch=Torch(**line["torch"]),
        device=line["device"],
        plan=Plan(
            profile=plan["profile"],
            seed=plan["seed"],
            families=tuple(plan["families"]),
            kinds=tuple(plan["kinds"]),
            clauses=clauses,
            corpus={name: CorpusFile(**file) for name, file in plan["corpus"].items()},
            cases=plan["cases"],
        ),
        label=line.get("label", ""),
    )


def case_lines(cases: Iterable[CaseResult]) -> Iterator[Line]:
    """The objects of as few lines as will do: one for all topologies of a family on which the kinds come out alike."""
    by_topology: dict[tuple[str, str, str], dict[Hashable, list[CaseResult]]] = {}
    for case in cases:
        alike = by_topology.setdefault((case.family, case.origin, case.topology), {})
        alike.setdefault(_became(case), []).append(case)
    grouped: dict[tuple[str, str, tuple[str, ...], Hashable], list[CaseResult]] = {}
    for (family, origin, _), alike in by_topology.items():
        for result, cases_alike in alike.items():
            grouped.setdefault((family, origin, tuple(case.kind for case in cases_alike), result), []).append(
                cases_alike[0]
            )
    for (family, origin, kinds, _), firsts in grouped.items():
        yield _line(family, origin, kinds, [case.topology for case in firsts], _result(firsts[0]))


def _became(case: CaseResult) -> Hashable:
    """What became of a case, to find those that came out alike."""
    counts = frozenset(case.judged.items()), frozenset(case.unjudged.items())
    return case.outcome, case.reason, *counts, case.deviations


def case_line(case: CaseResult) -> Line:
    """The object of one case's line."""
    return _line(case.family, case.origin, [case.kind], [case.topology], _result(case))


def _line(family: str, origin: str, kinds: Iterable[str], topologies: Iterable[str], result: Line) -> Line:
    named = {"family": family, "origin": origin, "kinds": list(kinds), "topologies": list(topologies)}
    return {"type": "case", **named, **result}


def _result(case: CaseResult) -> Line:
    """What became of a case."""
    counts = {"judged": dict(case.judged), **({"unjudged": dict(case.unjudged)} if case.unjudged else {})}
    deviations = [*map(_deviation, case.deviations)]
    return {"outcome": case.outcome, "reason": case.reason, **counts, "deviations": deviations}


def _deviation(deviation: Deviation) -> Line:
    """The object of a deviation; what it says nothing of is left out."""
    line = {name: value for name, value in vars(deviation).items() if value or name == "ledger"}
    if deviation.site is not None:  # the call of a hook is for scripts alone
        parts = {"kind": deviation.site.kind, "name": deviation.site.name}
        line["site"] = {name: value for name, value in parts.items() if value}
    return line


def _deviation_of(line: Line) -> Deviation:
    """The deviation that ``line`` says."""
    site = line.get("site")
    return Deviation(**{**line, "site": site and Site(**site)})


def cases_of(line: Line) -> Iterator[CaseResult]:
    """The cases that ``line`` says: each of its topologies with each of its kinds."""
    return alike_of(line).cases()


def alike_of(line: Line) -> Alike:
    """The cases that ``line`` says, together."""
    return Alike(
        family=line["family"],
        origin=line["origin"],
        kinds=tuple(line["kinds"]),
        topologies=tuple(line["topologies"]),
        outcome=line["outcome"],
        reason=line["reason"],
        judged=line["judged"],
        deviations=tuple(map(_deviation_of, line["deviations"])),
        unjudged=line.get("unjudged", {}),
    )


def counterexample_line(counterexample: Counterexample) -> Line:
    """The object of a counterexample's line."""
    return {"type": "counterexample", **vars(counterexample), "content": dict(counterexample.content)}


def counterexample_of(line: Line) -> Counterexample:
    """The counterexample that ``line`` says."""
    return Counterexample(topology=line["topology"], content=line["content"], source=line["source"])


def footer_line(footer: Footer) -> Line:
    """The object of the footer's line."""
    return {"type": "footer", **vars(footer), "counts": dict(footer.counts)}


def footer_of(line: Line) -> Footer:
    """The footer that ``line`` says."""
    return Footer(**{name: value for name, value in line.items() if name != "type"})
