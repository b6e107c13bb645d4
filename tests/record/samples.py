"""A small record that is sound, for tests to spoil."""

from __future__ import annotations

from hookcheck.contract.site import CLOSE, VALUE, Called, Site
from hookcheck.contract.verdict import CaseResult, Deviation
from hookcheck.record.model import (
    CorpusFile,
    Counterexample,
    Footer,
    Header,
    Plan,
    PlannedClause,
    Record,
    Torch,
    tally,
)

ENVIRONMENT = {"python": "3.11.7", "platform": "Linux", "numpy": "2.1.0", "hypothesis": "6.170", "pytest": "9.2"}

AT = Site(VALUE, "grad_input[0]", Called("net", 1))  # the call is for scripts, and no record has it

CASES = (
    CaseResult(
        "single-node",
        "aaaa",
        "backward",
        "corpus",
        "ran",
        judged={"BW-01": 2},
        deviations=(Deviation("BW-01", "net#1", "wrong values", "1.0 × 2", "0.0", "linear-bias", CLOSE, AT),),
    ),
    CaseResult("single-node", "aaaa", "full_backward", "corpus", "ran", judged={"BW-01": 2}),
    CaseResult("residual", "bbbb", "backward", "corpus", "not run", "cut short"),
    CaseResult("residual", "bbbb", "full_backward", "corpus", "not offered", "since 1.8"),
    CaseResult("residual", "cccc", "full_backward", "exploration", "ran", judged={"BW-01": 1}),
)


def record(cases: tuple[CaseResult, ...] = CASES) -> Record:
    plan = Plan(
        profile="default",
        seed=0,
        families=("single-node", "residual"),
        kinds=("backward", "full_backward"),
        clauses=(PlannedClause("BW-01", "promise", "It holds.", "1.8", "docs", ("backward", "full_backward")),),
        corpus={"single-node": CorpusFile(1, "ab12"), "residual": CorpusFile(1, "cd34")},
        cases=sum(case.origin == "corpus" for case in cases),
    )
    torch = Torch("2.13.0+cpu", "0123abc", None)
    return Record(
        header=Header("0.1.0", "2026-11-21T04:40:00Z", ENVIRONMENT, torch, "cpu", plan),
        cases=cases,
        counterexamples=(Counterexample("aaaa", {"layers": [{"type": "linear"}]}, "import torch\n"),),
        footer=Footer("2026-11-21T04:41:00Z", False, "interrupted by the user", tally(cases), 0),
    )
