"""One process going through its share: what workers before it left, what it finds, and what it keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from faults.engine import each, receiving
from packaging.specifiers import SpecifierSet

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.ledger import Entry, Ledger
from hookcheck.contract.verdict import CRASHED, GAPS, RAN, TIMED_OUT, CaseResult
from hookcheck.programs.program import programs
from hookcheck.record.lines import cases_of
from hookcheck.record.parts import read_parts
from hookcheck.run.examiner import Examiner, Lost, Task
from hookcheck.run.items import CellItem, Exploration
from hookcheck.run.session import Session, Unexplained
from hookcheck.suite import conformance_folder
from hookcheck.topology.codec import decode, identify
from hookcheck.topology.corpus import read
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import size
from hookcheck.topology.source import modules_source

FAMILY = "multi-node"
TOPOLOGIES = read(conformance_folder() / "corpus", FAMILY)[:4]
IDS = [identify(topology) for topology in TOPOLOGIES]
KINDS = ("full_backward", "global_full_backward")


class Watched(Examiner):
    """Runs tasks in this process, and notes which topologies."""

    def __init__(self) -> None:
        super().__init__(tuple(CLAUSES.values()), {"cpu": Ledger(())})
        self.ids: list[str] = []

    def perform(self, task: Task, ran: Callable[[], None] = lambda: None) -> list[CaseResult]:
        self.ids.append(task.id)
        return super().perform(task, ran)


class Losing(Watched):
    """Loses some tasks, named by topology and hook kinds."""

    def __init__(self, losses: dict[tuple[str, tuple[str, ...]], Lost]) -> None:
        super().__init__()
        self.losses = losses

    def perform(self, task: Task, ran: Callable[[], None] = lambda: None) -> list[CaseResult]:
        if (task.id, task.kinds) in self.losses:
            self.ids.append(task.id)
            raise self.losses[task.id, task.kinds]
        return super().perform(task, ran)


class Shares:
    """Workers of one run, each a `Session`; all are closed at the end."""

    def __init__(self, parts: Path, stack: ExitStack) -> None:
        self.parts, self.stack = parts, stack

    def worker(self, name: str, **changes: Any) -> Session:
        settings: dict[str, Any] = {
            "kinds": KINDS,
            "clauses": tuple(CLAUSES.values()),
            "ledgers": {"cpu": Ledger(())},
            "corpus": {FAMILY: TOPOLOGIES},
            "seed": 0,
            "parts": self.parts,
            "worker": name,
        }
        settings.update(changes)
        settings.setdefault("runner", Examiner(settings["clauses"], settings["ledgers"]))
        session = Session(**settings)
        self.stack.callback(session.close)
        return session

    def lines(self) -> list[dict[str, Any]]:
        return read_parts(self.parts / "cpu")


@pytest.fixture
def shares(tmp_path: Path) -> Iterator[Shares]:
    with ExitStack() as stack:
        yield Shares(tmp_path, stack)


def test_every_topology_is_run_with_every_hook_kind(shares: Shares) -> None:
    results = shares.worker("gw0").replayed(FAMILY, "cpu")
    assert [(r.topology, r.kind) for r in results] == [(id, kind) for id in IDS for kind in KINDS]
    assert {r.outcome for r in results} == {RAN}


def test_a_topology_is_run_with_its_share_of_the_hook_kinds(shares: Shares) -> None:
    of_each = {id: KINDS[:1] if i else (*KINDS, "forward") for i, id in enumerate(IDS)}
    results = shares.worker("gw0", shares={FAMILY: of_each}).replayed(FAMILY, "cpu")
    assert [(r.topology, r.kind) for r in results] == [(id, kind) for id in IDS for kind in of_each[id]]
    assert {r.outcome for r in results} == {RAN}


def test_every_result_is_in_the_part_file(shares: Shares) -> None:
    results = shares.worker("gw0").replayed(FAMILY, "cpu")
    cases = [case for line in shares.lines() for case in cases_of(line)]
    assert sorted(cases, key=place) == sorted(results, key=place)


def place(case: CaseResult) -> tuple[int, int]:
    return IDS.index(case.topology), KINDS.index(case.kind)


def test_torch_runs_once_however_often_results_are_asked_for(shares: Shares) -> None:
    worker = shares.worker("gw0", runner=(runner := Watched()))
    first = worker.replayed(FAMILY, "cpu")
    assert worker.replayed(FAMILY, "cpu") is first
    assert runner.ids == IDS


def test_every_known_deviation_of_a_cell_has_evidence_and_not_every_topology_is_put_into_words(shares: Shares) -> None:
    kinds = ("backward", "global_backward")
    known = replace(STALE, clauses=tuple(CLAUSES), families=(), kinds=kinds, instead=GAPS)
    results = shares.worker("gw0", kinds=kinds, ledgers={"cpu": Ledger((known,))}).replayed(FAMILY, "cpu")
    deviations = {(d.clause, r.kind, d.ledger) for r in results for d in r.deviations}
    assert deviations == {(d.clause, r.kind, d.ledger) for r in results for d in r.deviations if d.worded}
    assert {d.worded for r in results for d in r.deviations} == {True, False}


def test_a_worker_that_takes_over_runs_only_what_is_left(shares: Shares) -> None:
    whole = shares.worker("gw0", corpus={FAMILY: TOPOLOGIES[:2]}).replayed(FAMILY, "cpu")
    results = shares.worker("gw1", runner=(runner := Watched())).replayed(FAMILY, "cpu")
    assert runner.ids == IDS[2:]
    assert results[:4] == whole
    assert [(r.topology, r.kind) for r in results] == [(id, kind) for id in IDS for kind in KINDS]


def test_one_that_takes_over_in_the_middle_of_a_line_drops_it_and_goes_on_in_the_same_file(shares: Shares) -> None:
    shares.worker("gw0", corpus={FAMILY: TOPOLOGIES[:2]}).replayed(FAMILY, "cpu")
    part = shares.parts / "cpu" / "gw0.jsonl"
    part.write_bytes(part.read_bytes()[:-5])
    results = shares.worker("gw0").replayed(FAMILY, "cpu")
    assert {r.outcome for r in results} == {RAN}
    cases = [case for line in shares.lines() for case in cases_of(line)]
    assert {(case.topology, case.kind) for case in cases} == {(id, kind) for id in IDS for kind in KINDS}


@pytest.mark.parametrize("outcome", [CRASHED, TIMED_OUT])
@pytest.mark.parametrize("ran", [*range(len(KINDS)), len(KINDS)])
def test_the_case_that_is_lost_is_the_first_that_had_not_run(shares: Shares, outcome: str, ran: int) -> None:
    """Those that had run are run once more; where all had, it is the last, so that every task comes to its end."""
    runner = Losing({(IDS[1], KINDS): Lost(outcome, "so it was", ran)})
    results = shares.worker("gw0", runner=runner).replayed(FAMILY, "cpu")
    due = {(id, kind): RAN for id in IDS for kind in KINDS}
    due[IDS[1], KINDS[min(ran, len(KINDS) - 1)]] = outcome
    assert {(r.topology, r.kind): r.outcome for r in results} == due
    (lost,) = [r for r in results if r.outcome == outcome]
    assert lost.reason == "so it was"
    assert lost in [case for line in shares.lines() for case in cases_of(line)]


def test_a_lost_program_is_one_case(shares: Shares) -> None:
    first, *others = programs("handles")
    runner = Losing({(first.id, ("handles",)): Lost(CRASHED, "so it was", 0)})
    results = shares.worker("gw0", runner=runner).performed("handles", "cpu")
    assert [r.outcome for r in results] == [CRASHED, *([RAN] * len(others))]


def test_exploration_goes_on_behind_what_is_lost_and_tells_the_smallest(shares: Shares) -> None:
    sound = Watched()
    count = shares.worker("gw0", runner=sound).explore(FAMILY, "cpu", 10)
    lost = {(id, KINDS): Lost(CRASHED, "so it was", 0) for id in sound.ids[2:4]}
    losing = Losing(lost)
    with pytest.raises(Unexplained, match=r"crashed \(multi-node, full_backward\): so it was\ntopology "):
        shares.worker("gw1", runner=losing, parts=shares.parts / "other").explore(FAMILY, "cpu", 10)
    assert list(dict.fromkeys(losing.ids)) == sound.ids
    lines = read_parts(shares.parts / "other" / "cpu")
    assert [case.topology for line in lines if line["type"] == "case" for case in cases_of(line)] == sound.ids[2:4]
    assert [line["topology"] for line in lines if line["type"] == "topology"] == sound.ids[2:4]
    assert (lines[-1]["topologies"], lines[-1]["finished"]) == (count, False)


def test_exploration_that_was_finished_is_not_done_again(shares: Shares) -> None:
    count = shares.worker("gw0").explore(FAMILY, "cpu", 10)
    assert shares.worker("gw1", runner=(runner := Watched())).explore(FAMILY, "cpu", 10) == count
    assert not runner.ids
    assert shares.worker("gw2", runner=runner).explore(FAMILY, "cpu", 10, round=1)
    assert runner.ids


def cell(worker: Session, clause: str = "GI-01", kind: str = KINDS[0]) -> CellItem:
    return CellItem(worker, clause, FAMILY, kind, "cpu")


def test_a_cell_with_a_crash_fails_and_shows_the_network(shares: Shares) -> None:
    runner = Losing({(IDS[0], KINDS): Lost(CRASHED, "so it was", 0)})
    worker = shares.worker("gw0", runner=runner)
    message = rf"^crashed \({FAMILY}, {KINDS[0]}\): so it was\ntopology {IDS[0]}:\n\nimport torch"
    with pytest.raises(pytest.fail.Exception, match=message):
        cell(worker).check()
    cell(worker, kind=KINDS[1]).check()


def test_a_cell_that_conforms_passes(shares: Shares) -> None:
    cell(shares.worker("gw0")).check()


def test_a_cell_without_anything_to_judge_is_a_skip(shares: Shares) -> None:
    with pytest.raises(pytest.skip.Exception, match=r"^not run: no case of this family has anything"):
        cell(shares.worker("gw0"), "NG-01").check()


STALE = Entry(
    id="mended-since",
    clauses=("GI-01",),
    families=(FAMILY,),
    kinds=KINDS[:1],
    torch=SpecifierSet(">=1.7"),
    instead=("wrong values",),
    why="It was wrong once.",
    link="https://example.org",
    reviewed=date(2026, 1, 31),
)


def test_an_entry_of_the_ledger_that_explains_nothing_fails_its_cell(shares: Shares) -> None:
    worker = shares.worker("gw0", ledgers={"cpu": Ledger((STALE,))})
    with pytest.raises(pytest.fail.Exception, match=r"the ledger calls this cell deviating \(mended-since\).*narrow"):
        cell(worker).check()
    cell(worker, kind=KINDS[1]).check()
    cell(worker, clause="GI-02").check()


def test_an_entry_that_explains_something_makes_its_cell_an_expected_failure(shares: Shares) -> None:
    with receiving(each(lambda g: g * 2)):
        worker = shares.worker("gw0", ledgers={"cpu": Ledger((STALE,))})
        with pytest.raises(pytest.xfail.Exception, match="known: mended-since"):
            cell(worker).check()


def test_a_red_cell_tells_promise_expectation_observation_and_program(shares: Shares) -> None:
    with receiving(each(lambda g: g * 2)), pytest.raises(pytest.fail.Exception) as caught:
        cell(shares.worker("gw0", corpus={FAMILY: TOPOLOGIES[::-1]})).check()
    text = str(caught.value)
    assert text.startswith(f"GI-01 ({FAMILY}, full_backward): wrong values at net")
    assert f"\npromise:  {CLAUSES['GI-01'].statement}\nexpected: grad_input: (" in text
    assert "\nobserved: (" in text
    smallest = min(map(size, TOPOLOGIES))
    assert [t for t in TOPOLOGIES if f"topology {identify(t)}:" in text and size(t) == smallest]
    assert "import torch\nfrom torch import nn\n" in text
    assert ".backward(" in text


def test_exploration_of_a_sound_engine_finds_nothing_and_says_how_much_it_ran(shares: Shares) -> None:
    count = shares.worker("gw0", runner=(runner := Watched())).explore(FAMILY, "cpu", 10)
    assert 0 < count == len(runner.ids) == len(set(runner.ids)) <= 10
    assert not set(runner.ids) & set(IDS)
    line = {"type": "explored", "family": FAMILY, "round": 0, "topologies": count, "finished": True}
    assert shares.lines() == [line]


def explored(shares: Shares, number: int, **changes: Any) -> list[str]:
    """The ids of the topologies that an exploration draws, in a run of its own."""
    round = changes.pop("round", 0)
    worker = shares.worker("gw0", runner=(runner := Watched()), parts=shares.parts / str(number), **changes)
    worker.explore(FAMILY, "cpu", 10, round=round)
    return runner.ids


def test_exploration_draws_the_same_again_from_the_same_seed(shares: Shares) -> None:
    first, again, other = (explored(shares, number, seed=seed) for number, seed in enumerate((0, 0, 1)))
    assert first == again != other


def test_each_round_draws_others(shares: Shares) -> None:
    first, other, again = (explored(shares, number, round=round) for number, round in enumerate((0, 1, 1)))
    assert first != other == again


def test_what_is_not_explained_is_kept_with_its_topology(shares: Shares) -> None:
    with receiving(each(lambda g: g * 2)), pytest.raises(Unexplained):
        shares.worker("gw0", corpus={FAMILY: ()}).explore(FAMILY, "cpu", 10)
    lines = shares.lines()
    cases = [line for line in lines if line["type"] == "case"]
    assert [(line["kinds"], line["origin"]) for line in cases] == [([kind], "exploration") for kind in KINDS]
    (id,) = {id for line in cases for id in line["topologies"]}
    contents = [line["content"] for line in lines if line["type"] == "topology"]
    assert {identify(decode(content)) for content in contents} == {id}


@pytest.mark.parametrize("kind", KINDS)
def test_exploration_shrinks_a_fault_to_what_a_person_would_write(shares: Shares, kind: str) -> None:
    worker = shares.worker("gw0", kinds=(kind,), corpus={FAMILY: ()})
    with receiving(each(lambda g: g * 2)), pytest.raises(Unexplained) as caught:
        worker.explore(FAMILY, "cpu", 50)
    (counterexample,) = [decode(line["content"]) for line in shares.lines() if line["type"] == "topology"][-1:]
    assert counterexample.module == Linear(1, 1, bias=False)
    assert [i.shape for i in counterexample.inputs if i.name == "x"] == [(1,)]
    assert modules_source(counterexample).splitlines()[0] == "net = nn.Linear(1, 1, bias=False)"
    assert f"GI-01 ({FAMILY}, {kind}): wrong values at net#0" in str(caught.value)
    assert "net = nn.Linear(1, 1, bias=False)" in str(caught.value)


def test_exploration_reports_the_clause_that_it_found_first_when_shrinking(shares: Shares) -> None:
    """A container that is needed to show the fault stays in the counterexample."""
    from faults.firing import is_leaf, only_for

    worker = shares.worker("gw0", kinds=KINDS[:1], corpus={FAMILY: ()})
    with only_for(is_leaf), pytest.raises(Unexplained, match=r"BW-02 .*: not fired at net#0"):
        worker.explore(FAMILY, "cpu", 50)
    (counterexample,) = [decode(line["content"]) for line in shares.lines() if line["type"] == "topology"][-1:]
    assert modules_source(counterexample).splitlines()[0] == "net = nn.Sequential(nn.Linear(1, 1, bias=False))"


def test_an_exploration_that_finds_something_is_a_failed_item(shares: Shares) -> None:
    exploration = Exploration(shares.worker("gw0", kinds=KINDS[:1]), FAMILY, "cpu", 20)
    exploration.check()
    faulty = replace(exploration, session=shares.worker("gw1", kinds=KINDS[:1], parts=shares.parts / "other"))
    with receiving(each(lambda g: g * 2)), pytest.raises(pytest.fail.Exception, match="wrong values"):
        faulty.check()
