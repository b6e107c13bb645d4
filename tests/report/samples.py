"""Small records of several versions, with a verdict of every kind among them."""

from __future__ import annotations

from collections.abc import Iterable

from hookcheck.contract.verdict import CaseResult, Deviation
from hookcheck.record.model import Counterexample, Footer, Header, Plan, PlannedClause, Record, Torch, tally

KINDS = ("backward", "full_backward")
CLAUSES = (
    PlannedClause("BW-01", "promise", "Values are those of the inputs.", "1.8", "docs", KINDS),
    PlannedClause("BW-02", "pin", "The order of calls stays.", "1.8", "Captum", KINDS),
    PlannedClause("BW-03", "unspecified", "The type of an exception.", "1.8", "docs", KINDS),
)


def deviation(gap: str = "wrong values", ledger: str | None = None, clause: str = "BW-01") -> Deviation:
    return Deviation(clause, "net.fc#1", gap, "1.0 × 2", "0.0", ledger)


def case(
    topology: str,
    kind: str,
    deviations: Iterable[Deviation] = (),
    family: str = "single-node",
    outcome: str = "ran",
    reason: str = "",
) -> CaseResult:
    judged = {"BW-01": 2, "BW-02": 1} if outcome == "ran" else {}
    return CaseResult(family, topology, kind, "corpus", outcome, reason, judged, tuple(deviations))


def record(
    version: str, cases: Iterable[CaseResult], device: str = "cpu", stopped: str = "", source: str = "import torch\n"
) -> Record:
    cases = tuple(cases)
    deviating = dict.fromkeys(case.topology for case in cases if case.deviations)
    environment = {"python": "3.9.18", "platform": "Linux", "numpy": "1.26.4", "hypothesis": "6.141", "pytest": "8.4"}
    plan = Plan(
        profile="default",
        seed=0,
        families=tuple(dict.fromkeys(case.family for case in cases)),
        kinds=tuple(dict.fromkeys(case.kind for case in cases)),
        clauses=CLAUSES,
        corpus={},
        cases=len(cases),
    )
    return Record(
        header=Header("0.1.0", "2026-11-21T04:40:00Z", environment, Torch(version, "0123abc", None), device, plan),
        cases=cases,
        counterexamples=tuple(Counterexample(name, {"name": name}, source) for name in deviating),
        footer=Footer("2026-11-21T04:41:00Z", not stopped, stopped, tally(cases), 0),
    )


def records() -> list[Record]:
    """Three versions: the newest conforms but for what the ledger knows; the oldest lacks the full hook."""
    lacking = ("not offered", "this torch has no full_backward hooks")
    return [
        record(
            "2.13.0+cpu",
            [
                case("aaaa", "backward", [deviation(ledger="linear-bias")]),
                case("aaaa", "full_backward"),
                case("bbbb", "backward", family="residual"),
                case("bbbb", "full_backward", family="residual"),
            ],
        ),
        record(
            "1.13.1",
            [
                case("aaaa", "backward", [deviation(ledger="linear-bias")]),
                case("aaaa", "full_backward", [deviation("not fired"), deviation("wrong order", None, "BW-02")]),
                case("bbbb", "backward", family="residual", outcome="crashed", reason="signal 11"),
                case("bbbb", "full_backward", family="residual", outcome="not run", reason="cut short"),
            ],
            stopped="interrupted by the user",
        ),
        record(
            "1.7.1",
            [
                case("aaaa", "backward", [deviation(ledger="linear-bias")]),
                case("aaaa", "full_backward", (), "single-node", *lacking),
                case("bbbb", "backward", [deviation()], family="residual"),
                case("bbbb", "full_backward", (), "residual", *lacking),
            ],
        ),
    ]
