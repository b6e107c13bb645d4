"""Does a comparison of two records say what became worse, and never call mended what nobody looked at?"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest

from hookcheck.contract.verdict import (
    CRASHED,
    NOT_OFFERED,
    NOT_RUN,
    PROGRAM,
    RAN,
    TIMED_OUT,
    CaseResult,
    Deviation,
)
from hookcheck.record.changes import CHANGED, DISAPPEARED, MENDED, NEW, NEWLY_OFFERED, NO_LONGER_OFFERED, PIN_CHANGED
from hookcheck.record.compare import Comparison, Group, compare, of_cost
from hookcheck.record.model import CorpusFile, Counterexample, PlannedClause, Record
from hookcheck.record.reading import read
from hookcheck.record.uncompared import ROUNDED
from hookcheck.topology.codec import encode, identify
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Backward, Call, Input, Sequential, Topology
from hookcheck.topology.tree import Ref

from .samples import record

ROOT = Path(__file__).parents[2]
FAMILY, KIND = "single-node", "full_backward"
WRONG = Deviation("BW-01", "net#1", "wrong values", "1.0", "0.0")
LATE = Deviation("BW-01", "net#1", "wrong order", "1, 2", "2, 1", "late")
WARNED = Deviation("BW-01", "net#1", "new warning", "no warning", "UserWarning")


def case(topology: str, *deviations: Deviation, judged: int = 1, kind: str = KIND, outcome: str = RAN) -> CaseResult:
    reason = "" if outcome == RAN else "so"
    return CaseResult(FAMILY, topology, kind, "corpus", outcome, reason, {"BW-01": judged}, deviations)


def both(*cases: CaseResult, rank: str = "promise") -> Record:
    plan = record().header.plan
    clauses = tuple(replace(clause, rank=rank) for clause in plan.clauses)
    base = record(cases)
    return replace(base, header=replace(base.header, plan=replace(plan, clauses=clauses)), counterexamples=())


def statuses(comparison: Comparison) -> list[tuple[str, str, bool, int]]:
    return [(g.cause.status, g.cause.gap, g.cause.worse, g.cases) for g in comparison.groups]


def group(before: CaseResult, after: CaseResult, rank: str = "promise") -> Group:
    (only,) = compare(both(before, rank=rank), both(after, rank=rank)).groups
    return only


def test_equal_records_differ_in_nothing() -> None:
    comparison = compare(record(), record())
    assert (comparison.groups, comparison.worse, comparison.conclusive, comparison.compared) == ((), False, True, 3)


@pytest.mark.parametrize(
    ("before", "after", "rank", "status", "gap", "worse"),
    [
        ([], [WRONG], "promise", NEW, "wrong values", True),
        ([], [WRONG], "claim", NEW, "wrong values", True),
        ([], [WRONG], "pin", PIN_CHANGED, "wrong values", True),
        ([], [WRONG], "unspecified", CHANGED, "wrong values", False),
        ([WRONG], [], "promise", MENDED, "wrong values", False),
        ([WRONG], [], "pin", MENDED, "wrong values", False),
        ([WRONG], [], "unspecified", CHANGED, "wrong values", False),
        ([WRONG], [WARNED], "promise", CHANGED, "new warning", False),
        ([WARNED], [WRONG], "promise", CHANGED, "wrong values", True),
        ([WARNED], [WARNED, LATE], "promise", CHANGED, "wrong order", True),
        ([WARNED, LATE], [WARNED], "promise", MENDED, "wrong order", False),
    ],
)
def test_what_becomes_of_a_case(
    before: list[Deviation], after: list[Deviation], rank: str, status: str, gap: str, worse: bool
) -> None:
    old, new = (case("aaaa", *deviations, judged=max(len(deviations), 1)) for deviations in (before, after))
    cause = group(old, new, rank).cause
    assert (cause.status, cause.gap, cause.worse) == (status, gap, worse)


def test_what_shows_now_and_then_is_no_change() -> None:
    seldom = replace(WRONG, ledger="seldom")
    less, more = both(case("aaaa", judged=2)), both(case("aaaa", seldom))
    for pair in ((less, more), (more, less)):
        assert compare(*pair).groups
        assert not compare(*pair, varying=["seldom"]).groups
    for other in (case("aaaa", seldom, LATE, judged=2), case("aaaa", replace(LATE, ledger="another"), judged=2)):
        (new,) = compare(more, both(other), varying=["seldom"]).groups
        assert (new.cause.status, new.cause.gap) == (CHANGED, LATE.gap)


@pytest.mark.parametrize("name", ["processor", "aten", "threads"])
def test_how_another_processor_rounds_is_no_change(name: str) -> None:
    def on(what: str, *deviations: Deviation) -> Record:
        run = both(case("aaaa", *deviations))
        return replace(run, header=replace(run.header, environment={name: what}))

    known = replace(WRONG, gap="other rounding", ledger="rounds")
    for pair in ((on("one"), on("other", known)), (on("one", known), on("other"))):
        comparison = compare(*pair)
        assert (comparison.groups, comparison.conclusive) == ((), True)
        assert [(item.why, item.cases) for item in comparison.left_out] == [(ROUNDED, 1)]
    for pair in (
        (on("one"), on("one", known)),
        (on("one"), on("unknown", known)),
        (on("one"), on("other", replace(known, ledger=None))),
        (on("one"), on("other", replace(known, gap="wrong values"))),
    ):
        assert [group.cause.status for group in compare(*pair).groups] == [NEW]


def test_another_subject_of_the_same_case_deviates_newly() -> None:
    other = replace(WRONG, subject="net#2")
    change = group(case("aaaa", WRONG, judged=2), case("aaaa", WRONG, other, judged=2))
    assert (change.cause.status, change.cases) == (NEW, 1)


def test_a_group_is_a_cause_with_all_its_cases_and_both_sides_in_words() -> None:
    names = ("aaaa", "bbbb", "cccc")
    quiet = replace(WRONG, expected="", observed="")
    before = both(*map(case, names))
    after = both(case("aaaa", quiet), case("bbbb", WRONG), case("cccc", replace(WRONG, ledger="known")))
    by_entry = {g.cause.ledger: g for g in compare(before, after).groups}
    assert {ledger: g.cases for ledger, g in by_entry.items()} == {None: 2, "known": 1}
    example = by_entry[None].example
    assert (example.topology, example.expected, example.before, example.after) == ("bbbb", "1.0", "as expected", "0.0")
    mended = compare(after, before).groups
    assert {(g.cause.ledger, g.example.before, g.example.after) for g in mended} == {
        (None, "0.0", "as expected"),
        ("known", "0.0", "as expected"),
    }


def network(layers: int) -> Topology:
    inputs = (Input("x", (2, 2), requires_grad=True), Input("v", (2, 2)))
    module = Sequential(tuple(Linear(2, 2) for _ in range(layers)))
    return Topology(module, inputs, (Call("y", "", (Ref("x"),)), Backward((Ref("y"),), (Ref("v"),))))


def test_the_smallest_network_stands_for_its_group() -> None:
    sizes = {identify(network(layers)): layers for layers in range(1, 6)}
    after = both(*(case(name, WRONG) for name in sizes))
    shown = tuple(Counterexample(identify(n), encode(n), "import torch\n") for n in map(network, range(1, 6)))
    (change,) = compare(both(*map(case, sizes)), replace(after, counterexamples=shown)).groups
    assert sizes[change.example.topology] == 1
    assert min(sizes) != change.example.topology  # the first by id is another


@pytest.mark.parametrize("outcome", [NOT_RUN, CRASHED, TIMED_OUT, NOT_OFFERED])
def test_what_is_not_run_is_never_mended(outcome: str) -> None:
    change = group(case("aaaa", WRONG), case("aaaa", outcome=outcome))
    assert change.cause.worse
    assert change.cause.status == (NO_LONGER_OFFERED if outcome == NOT_OFFERED else DISAPPEARED)
    assert change.cause.reason == f"{outcome}: so"


@pytest.mark.parametrize("outcome", [NOT_RUN, CRASHED, TIMED_OUT])
def test_what_runs_anew_is_neither_mended_nor_new(outcome: str) -> None:
    comparison = compare(both(case("aaaa", outcome=outcome)), both(case("aaaa", WRONG)))
    assert comparison.groups == ()
    assert [(item.why, item.cases) for item in comparison.left_out] == [
        (f"{outcome} in the earlier run, ran in the later", 1)
    ]
    assert not comparison.conclusive  # nothing was compared


def test_what_is_newly_offered_is_not_worse() -> None:
    change = group(case("aaaa", outcome=NOT_OFFERED), case("aaaa"))
    assert (change.cause.status, change.cause.worse, change.cause.reason) == (NEWLY_OFFERED, False, "not offered: so")


def test_a_case_that_a_record_of_the_same_corpus_lacks_has_disappeared() -> None:
    comparison = compare(both(case("aaaa", WRONG), case("bbbb")), both(case("bbbb")))
    assert statuses(comparison) == [(DISAPPEARED, "", True, 1)]
    assert of_cost(comparison, ["silent"]).groups == comparison.groups


def test_networks_of_another_corpus_are_left_out_and_the_others_compared() -> None:
    after = both(case("bbbb", WRONG), case("cccc", WRONG))
    plan = after.header.plan
    plan = replace(plan, corpus={**plan.corpus, FAMILY: CorpusFile(2, "ffff")})
    after = replace(after, header=replace(after.header, plan=plan))
    comparison = compare(both(case("aaaa", WRONG), case("bbbb")), after)
    assert statuses(comparison) == [(NEW, "wrong values", True, 1)]
    assert [(item.why, item.families, item.cases, item.lost) for item in comparison.left_out] == [
        ("only the corpus of the earlier run has these networks", (FAMILY,), 1, False),
        ("only the corpus of the later run has these networks", (FAMILY,), 1, False),
    ]


@pytest.mark.parametrize("part", ["families", "kinds"])
def test_what_the_later_run_leaves_out_cannot_be_told(part: str) -> None:
    after = both(replace(case("bbbb"), family="residual", kind="backward"))
    narrow = after.header.plan
    plan = replace(narrow, families=("residual",)) if part == "families" else replace(narrow, kinds=("backward",))
    after = replace(after, header=replace(after.header, plan=plan))
    comparison = compare(both(case("aaaa", WRONG), replace(case("bbbb"), family="residual", kind="backward")), after)
    assert (comparison.groups, comparison.compared, comparison.conclusive) == ((), 1, False)
    assert [item.lost for item in comparison.left_out] == [True]


def with_clause(base: Record, clause: str) -> Record:
    plan = base.header.plan
    more = PlannedClause(clause, "promise", "It is so.", "1.8", "docs", (KIND,))
    return replace(base, header=replace(base.header, plan=replace(plan, clauses=(*plan.clauses, more))))


def test_a_clause_that_one_run_alone_judges_is_left_out() -> None:
    deviating = replace(case("aaaa", replace(WRONG, clause="BW-02")), judged={"BW-01": 1, "BW-02": 1})
    alone, plain = with_clause(both(deviating), "BW-02"), both(case("aaaa"))
    for before, after, which in ((alone, plain, "earlier"), (plain, alone, "later")):
        comparison = compare(before, after)
        assert comparison.groups == ()
        assert [(i.why, i.lost) for i in comparison.left_out] == [
            (f"only the {which} run judged BW-02", which == "earlier")
        ]


def test_a_clause_that_has_nothing_to_judge_any_more_has_disappeared() -> None:
    cause = group(case("aaaa", WRONG, judged=2), case("aaaa", judged=0)).cause
    assert (cause.status, cause.worse, cause.reason) == (DISAPPEARED, True, "nothing is left to judge for BW-01")


def test_a_deviation_is_not_mended_where_fewer_subjects_are_judged() -> None:
    change = group(case("aaaa", WRONG, judged=2), case("aaaa", judged=1))
    assert (change.cause.status, change.cause.worse, change.cause.gap) == (DISAPPEARED, True, "wrong values")
    assert change.example.after == ""


def test_fewer_subjects_alone_are_not_worse() -> None:
    assert compare(both(case("aaaa", judged=2)), both(case("aaaa", judged=1))).groups == ()


def test_one_deviation_less_on_a_subject_is_no_subject_less() -> None:
    before = case("aaaa", WARNED, replace(WARNED, ledger="known"), judged=2)
    assert group(before, case("aaaa", WARNED)).cause.status == MENDED


def test_the_costliest_come_first_and_a_cost_can_be_asked_for() -> None:
    gaps = ("other rounding", "kept alive", "new warning", "raised", "wrong order", "not fired", "wrong values")
    names = [f"{place:04}" for place in range(len(gaps))]
    after = both(*(case(name, replace(WRONG, gap=gap)) for name, gap in zip(names, gaps)))
    comparison = compare(both(*map(case, names)), after)
    assert [g.cause.gap for g in comparison.groups] == list(reversed(gaps))
    assert [g.cause.gap for g in of_cost(comparison, ["silent", "memory"]).groups] == ["wrong values", "kept alive"]


def test_what_disappeared_comes_before_all_and_what_is_offered_after() -> None:
    before = both(case("aaaa"), case("bbbb"), case("cccc", outcome=NOT_OFFERED))
    after = both(case("aaaa", WRONG), case("bbbb", outcome=NOT_RUN), case("cccc"))
    assert [g.cause.status for g in compare(before, after).groups] == [DISAPPEARED, NEW, NEWLY_OFFERED]


def test_hook_kinds_can_be_asked_for() -> None:
    cases = [case("aaaa", kind="backward"), case("aaaa")]
    after = [case("aaaa", WRONG, kind="backward"), case("aaaa", LATE)]
    comparison = compare(both(*cases), both(*after), ["backward"])
    assert (comparison.compared, [g.cause.gap for g in comparison.groups]) == (1, ["wrong values"])


def test_programs_that_are_not_asked_for_are_counted() -> None:
    programs = [replace(case(name), family=PROGRAM, kind="chapter") for name in ("BW-01", "BW-02", "BW-03")]
    run_record = both(*programs, case("aaaa", kind="backward"))
    comparison = compare(run_record, run_record, ["backward"], ["BW-02"])
    assert comparison.compared == 2
    assert [(item.cases, item.lost) for item in comparison.left_out if item.families == (PROGRAM,)] == [(2, False)]
    assert comparison.conclusive
    assert compare(run_record, run_record).left_out == ()


def test_of_networks_whose_content_no_record_holds_the_shortest_is_shown() -> None:
    cases = [case(name) for name in ("aaaa", "bbbb", "cccc")]
    after = [case(name, WRONG) for name in ("aaaa", "bbbb", "cccc")]
    (change,) = compare(both(*cases), both(*after), length={"aaaa": 90, "bbbb": 70}.get).groups
    assert change.example.topology == "bbbb"
    (change,) = compare(both(*cases), both(*after)).groups
    assert change.example.topology == "aaaa"


@lru_cache(maxsize=1)
def measured() -> Comparison:
    records = ROOT / "reports" / "records"
    return compare(read(records / "torch-2.6.0-cpu.jsonl.gz"), read(records / "torch-2.13.0-cpu.jsonl.gz"))


def networks(groups: Iterable[Group], **wanted: str) -> int:
    of_networks = (g for g in groups if g.families != (PROGRAM,))
    return sum(g.cases for g in of_networks if all(getattr(g.cause, name) == value for name, value in wanted.items()))


def test_what_changed_from_2_6_to_2_13_on_networks() -> None:
    # How many networks round otherwise under a hook differs from processor to processor: no count is held to that.
    groups = [g for g in measured().groups if g.cause.gap != "other rounding"]
    assert networks(groups, status=NEW, gap="new warning") == 2429
    assert networks(groups, status=CHANGED, gap="new warning") == 8  # which were warned of otherwise already
    assert networks(groups, status=MENDED, gap="not fired") == 7  # hooks that checkpoints lost, on 2.6.0 still
    of_graphs = [g for g in groups if (g.cause.ledger or "").startswith("aot-eager")]
    assert networks(of_graphs) == 36  # global hooks meet the graphs that a compiled net is made of, since 2.12
    assert networks(groups, status=MENDED, gap="raised") == 34  # a checkpoint on another default device
    of_nodes = [g for g in groups if g.cause.gap and (g.cause.ledger or "").startswith("legacy-node")]
    assert networks(of_nodes) == 7  # a legacy hook is on another last Node
    of_order = [g for g in groups if g.cause.gap and (g.cause.ledger or "") == "legacy-order"]
    assert networks(of_order) == 1  # and so comes at another time
    shown = [g for g in groups if g.cause.status == NEW and g.cause.gap == "raised"]
    assert networks(shown) == 1  # a leaf of MKLDNN, whose checkpoint raised on 2.6.0 before it could be refused
    assert networks(g for g in groups if g.cause.gap) == 2429 + 8 + 7 + 36 + 34 + 7 + 1 + 1
    assert networks(groups, status=DISAPPEARED) == 1  # the gradients of that network


def test_what_changed_from_2_6_to_2_13_in_programs() -> None:
    groups = [g for g in measured().groups if g.families == (PROGRAM,) and g.cause.gap]
    mended = {g.cause.clause for g in groups if g.cause.status == MENDED}
    assert mended == {
        *("AB-03", "AM-03", "CK-21", "CK-30", "RB-11", "SI-04", "TC-14", "TF-11", "TR-08", "U-23"),
        *("DT-01", "DT-02", "DT-05"),  # pytorch#173865, #173454, #171709
        *("CK-36", "GE-04", "LT-14"),  # pytorch#165068, #160098, #164407
        *("CC-03", "HT-14", "RF-03"),  # pytorch#172519, #147599, #161589
        *("CC-04", "DS-46"),  # a disabled hook; a step that raised, which has no gradient now
    }
    assert {g.cause.clause for g in groups} - mended == {
        *("BP-09", "BF-16", "BF-13"),  # the new warning
        *("TC-07", "DD-14"),
        "TC-29",  # aot_eager calls hooks on all modules for its graphs, since 2.10
    }
    silent = [g.cause.clause for g in groups if g.cause.cost == "silent" and g.cause.worse]
    assert silent == ["DD-14", "DS-46"]  # replicate was rewritten (pytorch#174307); FSDP loses its parameters
    raising = [g.cause.clause for g in groups if g.cause.cost == "exception" and g.cause.worse]
    assert raising == ["DT-01", "TC-29"]  # of full_tensor, by pytorch#173865; a lone hook on all modules


def test_torch_is_not_needed() -> None:
    program = "import sys, hookcheck.record.compare; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
