from __future__ import annotations

import gc
import importlib
import inspect
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
import torch
from packaging.specifiers import SpecifierSet

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAUSES, PROMISE, Subject
from hookcheck.contract.ledger import Entry, Ledger, applying, load
from hookcheck.contract.verdict import NOT_OFFERED, NOT_RUN, RAN
from hookcheck.programs import running as module
from hookcheck.programs.check import Check, NotOffered, NotRun
from hookcheck.programs.facts import facts_of
from hookcheck.programs.processes import groups_closed, process_group
from hookcheck.programs.program import Program, chapters, programs
from hookcheck.programs.running import examine_program
from hookcheck.releases.numbers import release
from hookcheck.run.plan import smoke


def stray_program(act: object, **changes: object) -> Program:
    """A program that is in no chapter."""
    plain = Program("XX-01", PROMISE, "It holds.", "1.7", "docs", ("test-running",), Subject.PROGRAM, act)  # type: ignore[arg-type]
    return replace(plain, **changes)  # type: ignore[arg-type]


def holds(check: Check) -> None:
    check.true("one", True)
    check.true("two", True)


def fails(check: Check) -> None:
    check.true("one", True)
    check.calls("two", 1, 2)


def test_a_program_whose_facts_are_so_conforms() -> None:
    result = examine_program(stray_program(holds), Ledger(()))
    assert (result.family, result.topology, result.kind, result.origin) == (
        "program",
        "XX-01",
        "test-running",
        "corpus",
    )
    assert (result.outcome, result.judged, result.deviations) == (RAN, {"XX-01": 2}, ())


def test_a_fact_that_is_not_so_is_a_deviation_named_after_it() -> None:
    (deviation,) = examine_program(stray_program(fails), Ledger(())).deviations
    assert (deviation.clause, deviation.subject, deviation.gap, deviation.ledger) == ("XX-01", "two", "not fired", None)
    assert (deviation.expected, deviation.observed) == ("2 calls", "1 calls")


@pytest.mark.skipif(release(torch.__version__) < (2, 0), reason="programs are moved to a device since torch 2.0")
@pytest.mark.parametrize(("device", "generation", "times"), [("meta", (), 1), ("meta", (1,), 0), ("cpu", (), 0)])
def test_a_device_has_let_go_of_all_when_a_program_collects_garbage(
    monkeypatch: pytest.MonkeyPatch, device: str, generation: tuple[int, ...], times: int
) -> None:
    settled: list[str] = []
    monkeypatch.setattr("hookcheck.programs.facts.settle", lambda: settled.append("settled"))
    facts_of(stray_program(lambda check: check.true("collected", gc.collect(*generation) >= 0)), device)
    gc.collect()
    assert settled == ["settled"] * times


@pytest.mark.parametrize(("fact", "explains"), [("two", True), ("one", False)])
def test_the_ledger_may_name_the_fact(fact: str, explains: bool) -> None:
    entry = Entry(
        "known", ("XX-01",), ("test-running",), SpecifierSet(">=1.7"), ("not fired",), "So it is.", "https://x.org",
        date(2026, 1, 31), ("program",), when=(("fact", (fact,)),),
    )  # fmt: skip
    (deviation,) = examine_program(stray_program(fails), Ledger((entry,))).deviations
    assert deviation.ledger == ("known" if explains else None)


VARYING = Entry(
    "race", ("XX-01",), ("test-running",), SpecifierSet(">=1.7"), ("not fired", "wrong values"), "So it is.",
    "https://x.org", date(2026, 1, 31), ("program",), when=(("fact", ("two",)),), varies="threads race",
)  # fmt: skip


@pytest.mark.parametrize("act", [holds, fails])
def test_a_verdict_may_be_a_set_of_outcomes_whichever_a_run_shows(act: object) -> None:
    result = examine_program(stray_program(act), Ledger((VARYING,)))
    (deviation,) = result.deviations
    assert (deviation.subject, deviation.gap, deviation.ledger) == ("program", "wrong values", "race")
    assert deviation.expected == "It holds."
    assert deviation.observed == "not fired, wrong values, or as promised: threads race"
    assert not Ledger((VARYING,)).stale([result], "XX-01", "program", "test-running")


def test_what_is_not_in_the_set_stays_unexplained() -> None:
    def otherwise(check: Check) -> None:
        check.true("one", False)
        check.calls("two", 1, 2)

    unknown, whole = examine_program(stray_program(otherwise), Ledger((VARYING,))).deviations
    assert (unknown.subject, unknown.ledger, whole.ledger) == ("one", None, "race")


def test_an_exception_is_a_fact_of_the_whole() -> None:
    def raises(check: Check) -> None:
        check.true("one", True)
        raise ValueError("no such luck\nat all")

    (deviation,) = examine_program(stray_program(raises), Ledger(())).deviations
    assert (deviation.subject, deviation.gap, deviation.observed) == ("program", "raised", "ValueError: no such luck")


def test_a_program_that_states_nothing_is_at_fault_itself() -> None:
    with pytest.raises(AssertionError, match="XX-01 states nothing"):
        examine_program(stray_program(lambda check: None), Ledger(()))


@pytest.mark.parametrize(("reason", "outcome"), [(NotOffered, NOT_OFFERED), (NotRun, NOT_RUN)])
def test_a_program_may_say_what_is_lacking(reason: type[Exception], outcome: str) -> None:
    def lacks(check: Check) -> None:
        raise reason("no such thing")

    result = examine_program(stray_program(lacks), Ledger(()))
    assert (result.outcome, result.reason, result.judged) == (outcome, "no such thing", {})


def test_what_came_later_is_not_offered_and_what_is_about_cuda_is_not_run_on_a_cpu() -> None:
    assert examine_program(stray_program(holds, since="99.0"), Ledger(())).outcome == NOT_OFFERED
    assert examine_program(stray_program(holds, device="cuda"), Ledger(())).outcome == NOT_RUN


def test_global_hooks_that_a_program_leaves_are_taken_off() -> None:
    def leaves(check: Check) -> None:
        torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
        check.true("one", True)

    before = dict(torch.nn.modules.module._global_forward_hooks)
    facts_of(stray_program(leaves), "cpu")
    assert dict(torch.nn.modules.module._global_forward_hooks) == before


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch is built without torch.distributed")
def test_a_program_is_in_no_process_group_that_something_else_left() -> None:
    """A network in DistributedDataParallel stays in the group of one that it needs. A program that one runs stays in
    that of the other."""
    groups: list[bool] = []

    def within(check: Check) -> None:
        groups.append(torch.distributed.is_initialized())
        check.state("it ran", None)

    def runs_another(check: Check) -> None:
        with process_group(check):
            facts_of(stray_program(within), "cpu")
        check.state("it ran", None)

    def asks(check: Check) -> None:
        check.true("in no group", not torch.distributed.is_initialized())

    with groups_closed():
        torch.distributed.init_process_group("gloo", rank=0, world_size=1, store=torch.distributed.HashStore())
        assert not examine_program(stray_program(asks), Ledger(())).deviations
    assert not examine_program(stray_program(runs_another), Ledger(())).deviations
    assert groups == [True]


ALONE = next(p for p in CLAUSES.values() if isinstance(p, Program) and p.alone and p.device != "cuda")


def test_a_program_that_takes_hooks_off_optimizers_leaves_them_as_they_were() -> None:
    """As torch.compile does up to 2.2: the class has a ``step`` without hooks, which says that it has some."""
    optimizer: type = torch.optim.SGD
    before, hooked = vars(optimizer)["step"], hasattr(optimizer.step, "hooked")

    def act(check: Check) -> None:
        optimizer.step = lambda self: None  # type: ignore[attr-defined]
        before.hooked = True
        check.state("done", None)

    facts_of(stray_program(act), "cpu")
    assert vars(optimizer)["step"] is before
    assert hasattr(before, "hooked") is hooked


QUICK = {clause.id: clause for clause in map(CLAUSES.__getitem__, smoke()[1]) if isinstance(clause, Program)}
"""The quick programs."""

KNOWN = applying(load(), torch.__version__, "cpu")


@pytest.mark.slow
@pytest.mark.one_in(2)
@pytest.mark.parametrize("id", [id for id in QUICK if not any(KNOWN.varying(id))])
def test_a_program_comes_out_the_same_the_second_time(id: str) -> None:
    first, second = (examine_program(QUICK[id], KNOWN) for _ in range(2))
    assert [(d.subject, d.gap, d.ledger) for d in second.deviations] == [
        (d.subject, d.gap, d.ledger) for d in first.deviations
    ]
    assert (second.outcome, second.judged) == (first.outcome, first.judged)


def test_what_a_program_alone_states_is_what_it_states_to_another_process() -> None:
    assert examine_program(ALONE, Ledger(())).outcome in (RAN, NOT_OFFERED, NOT_RUN)


def crashes(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def waits(*_: Any) -> None:
    time.sleep(600)


def works_on(*_: Any) -> None:
    module.limit_processor_time(1)
    while True:
        pass


@pytest.mark.slow
@pytest.mark.parametrize(("act", "gap"), [(crashes, "crashed"), (waits, "timed out"), (works_on, "timed out")])
def test_a_crash_and_a_hang_are_facts(act: Callable[..., None], gap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ALONE_HANG_LIMIT", 10 if act is waits else 600)
    monkeypatch.setattr(module, "_tell", act)
    (deviation,) = examine_program(stray_program(holds, alone=True), Ledger(())).deviations
    assert (deviation.subject, deviation.gap) == ("program", gap)


def ends(*_: Any) -> None:
    os._exit(3)


def test_a_process_that_ends_without_facts_is_no_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="KeyError"):  # there, nobody has declared the stray program
        examine_program(stray_program(holds, alone=True), Ledger(()))
    monkeypatch.setattr(module, "_tell", ends)
    with pytest.raises(RuntimeError, match="ended with exit code 3"):
        examine_program(stray_program(holds, alone=True), Ledger(()))


@pytest.mark.parametrize("chapter", chapters())
def test_every_chapter_opens_with_a_paragraph(chapter: str) -> None:
    module = importlib.import_module(f"hookcheck.programs.chapters.{chapter.replace('-', '_')}")
    assert len(inspect.getdoc(module) or "") > 80


@pytest.mark.parametrize("chapter", chapters())
def test_a_program_says_what_it_states_and_where_it_is_promised(chapter: str) -> None:
    assert programs(chapter)
    for program in programs(chapter):
        assert program.statement.endswith(".")
        assert program.source
        assert program.source_code.startswith("@program(")
