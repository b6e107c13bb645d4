"""One process going through its share: what workers before it left, what it finds, and what it keeps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from faults.engine import each, receiving
from packaging.specifiers import SpecifierSet

import hookcheck.clauses  # noqa: F401 -- declares the clauses
import hookcheck.networks.examine as examine
import hookcheck.run.session as module
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.ledger import Entry, Ledger
from hookcheck.contract.verdict import CRASHED, GAPS, RAN, TIMED_OUT, CaseResult
from hookcheck.probe.observation import Observation
from hookcheck.record.lines import case_line, cases_of
from hookcheck.record.parts import read_parts
from hookcheck.run.plugin import Cell, Exploration
from hookcheck.run.session import TIME_LIMIT, Session, Unexplained
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
        session = Session(**{**settings, **changes})
        self.stack.callback(session.close)
        return session

    def lines(self) -> list[dict[str, Any]]:
        return read_parts(self.parts / "cpu")


@pytest.fixture
def shares(tmp_path: Path) -> Iterator[Shares]:
    with ExitStack() as stack:
        yield Shares(tmp_path, stack)


@pytest.mark.parametrize("share", ["replayed", "explored"])
def test_the_alarm_is_off_once_a_share_is_done(shares: Shares, monkeypatch: pytest.MonkeyPatch, share: str) -> None:
    """Else it would end the process in the middle of whatever comes a minute later."""
    calls = []
    monkeypatch.setattr(module.faulthandler, "dump_traceback_later", lambda *_, **__: calls.append("set"))
    monkeypatch.setattr(module.faulthandler, "cancel_dump_traceback_later", lambda: calls.append("off"))
    worker = shares.worker("gw0")
    for _ in range(2):
        worker._found.clear()
        if share == "replayed":
            worker.replayed(FAMILY, "cpu")
        else:
            worker.explore(FAMILY, "cpu", 3)
    assert calls[-1] == "off"
    assert "set" in calls


def begun(worker: Session, id: str, ago: float = 0) -> None:
    """Leaves the part file as a worker does that ended in the middle of a topology."""
    worker._part("cpu").append({"type": "begin", "family": FAMILY, "topology": id, "at": time.time() - ago})


def test_every_topology_is_run_with_every_hook_kind(shares: Shares) -> None:
    results = shares.worker("gw0").replayed(FAMILY, "cpu")
    assert [(r.topology, r.kind) for r in results] == [(id, kind) for id in IDS for kind in KINDS]
    assert {r.outcome for r in results} == {RAN}


def test_every_result_is_in_the_part_file_behind_the_line_that_announces_it(shares: Shares) -> None:
    results = shares.worker("gw0").replayed(FAMILY, "cpu")
    told: dict[str, list[CaseResult]] = {}
    for line in shares.lines():
        if line["type"] == "begin":
            told[line["topology"]] = []
        else:
            told[line["topologies"][-1]].extend(cases_of(line))
    assert [*told] == IDS
    for id, cases in told.items():
        assert sorted(cases, key=lambda case: KINDS.index(case.kind)) == [r for r in results if r.topology == id]


def test_torch_runs_once_however_often_results_are_asked_for(shares: Shares, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = shares.worker("gw0")
    first = worker.replayed(FAMILY, "cpu")
    monkeypatch.setattr(module, "examine", None)
    assert worker.replayed(FAMILY, "cpu") is first


def test_every_known_deviation_of_a_cell_has_evidence_and_not_every_topology_is_put_into_words(shares: Shares) -> None:
    kinds = ("backward", "global_backward")
    known = replace(STALE, clauses=tuple(CLAUSES), families=(), kinds=kinds, instead=GAPS)
    results = shares.worker("gw0", kinds=kinds, ledgers={"cpu": Ledger((known,))}).replayed(FAMILY, "cpu")
    found = {(d.clause, r.kind, d.ledger) for r in results for d in r.deviations}
    assert found == {(d.clause, r.kind, d.ledger) for r in results for d in r.deviations if d.told}
    assert {d.told for r in results for d in r.deviations} == {True, False}


def test_a_worker_that_takes_over_runs_only_what_is_left(shares: Shares, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = shares.worker("gw0", corpus={FAMILY: TOPOLOGIES[:2]}).replayed(FAMILY, "cpu")
    examined: list[str] = []
    monkeypatch.setattr(module, "examine", lambda t, *rest: examined.append(identify(t)) or examine.examine(t, *rest))
    results = shares.worker("gw1").replayed(FAMILY, "cpu")
    assert examined == IDS[2:]
    assert results[:4] == whole
    assert [(r.topology, r.kind) for r in results] == [(id, kind) for id in IDS for kind in KINDS]


def test_a_topology_in_flight_when_a_worker_died_has_crashed_and_the_run_goes_on(shares: Shares) -> None:
    begun(shares.worker("gw0"), IDS[1])
    results = shares.worker("gw1").replayed(FAMILY, "cpu")
    assert [(r.topology, r.kind, r.outcome) for r in results] == [
        (id, kind, CRASHED if (id, kind) == (IDS[1], KINDS[0]) else RAN) for id in IDS for kind in KINDS
    ]
    (lost,) = [r for r in results if r.outcome == CRASHED]
    assert lost.reason == "the interpreter ended while it ran"
    assert case_line(lost) in shares.lines()


def test_it_has_timed_out_if_it_was_begun_long_ago(shares: Shares) -> None:
    begun(shares.worker("gw0"), IDS[1], ago=TIME_LIMIT + 1)
    (lost,) = [r for r in shares.worker("gw1").replayed(FAMILY, "cpu") if r.outcome != RAN]
    assert (lost.topology, lost.kind, lost.outcome) == (IDS[1], KINDS[0], TIMED_OUT)
    assert lost.reason == f"still running after {TIME_LIMIT} s"


@pytest.mark.parametrize("ran", [*range(len(KINDS)), len(KINDS)])
def test_the_hook_kind_that_crashed_is_the_first_that_had_not_run(shares: Shares, ran: int) -> None:
    """One that had run is run once more; where all had, it is the last, so that no topology is begun for ever."""
    dead = shares.worker("gw0")
    begun(dead, IDS[0])
    for _ in range(ran):
        dead._part("cpu").count()
    results = shares.worker("gw1").replayed(FAMILY, "cpu")
    found = {r.kind: r.outcome for r in results if r.topology == IDS[0]}
    assert found == {kind: CRASHED if kind == KINDS[min(ran, len(KINDS) - 1)] else RAN for kind in KINDS}


def test_the_part_file_tells_how_many_hook_kinds_had_run(shares: Shares, monkeypatch: pytest.MonkeyPatch) -> None:
    def dying(*arguments: Any) -> Observation:
        if arguments[2] == KINDS[1]:
            raise KeyboardInterrupt
        return observe(*arguments)

    observe = examine.observe
    monkeypatch.setattr(examine, "observe", dying)
    with pytest.raises(KeyboardInterrupt):
        shares.worker("gw0").replayed(FAMILY, "cpu")
    (line,) = shares.lines()
    assert (line["type"], line["topology"], line["ran"]) == ("begin", IDS[0], 1)


def test_what_crashes_twice_does_not_keep_the_run_from_ending(shares: Shares) -> None:
    begun(shares.worker("gw0"), IDS[0])
    first = shares.worker("gw1", corpus={FAMILY: TOPOLOGIES[:1]}).replayed(FAMILY, "cpu")
    assert shares.worker("gw2", corpus={FAMILY: TOPOLOGIES[:1]}).replayed(FAMILY, "cpu") == first


def test_another_familys_line_says_nothing_of_this_one(shares: Shares) -> None:
    worker = shares.worker("gw0")
    worker._part("cpu").append({"type": "begin", "family": "single-node", "topology": IDS[0], "at": time.time()})
    assert {r.outcome for r in shares.worker("gw1").replayed(FAMILY, "cpu")} == {RAN}


def cell(worker: Session, clause: str = "GI-01", kind: str = KINDS[0]) -> Cell:
    return Cell(worker, clause, FAMILY, kind, "cpu")


def test_a_cell_with_a_crash_fails(shares: Shares) -> None:
    begun(shares.worker("gw0"), IDS[0])
    with pytest.raises(pytest.fail.Exception, match=r"^crashed: the interpreter ended while it ran$"):
        cell(shares.worker("gw1")).check()


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


def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the topologies that are examined from now on, as they come."""
    ids: list[str] = []
    examine = module.examine
    monkeypatch.setattr(module, "examine", lambda t, *rest: ids.append(identify(t)) or examine(t, *rest))
    return ids


def test_exploration_of_a_sound_engine_finds_nothing_and_says_how_much_it_ran(
    shares: Shares, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = drawn(monkeypatch)
    count = shares.worker("gw0").explore(FAMILY, "cpu", 10)
    assert 0 < count == len(ids) == len(set(ids)) <= 10
    assert not set(ids) & set(IDS)
    assert shares.lines() == [{"type": "explored", "family": FAMILY, "topologies": count}]


def test_exploration_draws_the_same_again_from_the_same_seed(shares: Shares, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = drawn(monkeypatch)
    found = []
    for seed in (0, 0, 1):
        shares.worker("gw0", seed=seed).explore(FAMILY, "cpu", 10)
        found.append(tuple(ids))
        ids.clear()
    assert found[0] == found[1] != found[2]


def test_each_round_draws_others(shares: Shares, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = drawn(monkeypatch)
    found = []
    for number in (0, 1, 1):
        shares.worker("gw0").explore(FAMILY, "cpu", 10, round=number)
        found.append(tuple(ids))
        ids.clear()
    assert found[0] != found[1] == found[2]


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
    (kept,) = [decode(line["content"]) for line in shares.lines() if line["type"] == "topology"][-1:]
    assert kept.module == Linear(1, 1, bias=False)
    assert [i.shape for i in kept.inputs if i.name == "x"] == [(1,)]
    assert modules_source(kept).splitlines()[0] == "net = nn.Linear(1, 1, bias=False)"
    assert f"GI-01 ({FAMILY}, {kind}): wrong values at net#0" in str(caught.value)
    assert "net = nn.Linear(1, 1, bias=False)" in str(caught.value)


def test_exploration_reports_the_clause_that_it_found_first_when_shrinking(shares: Shares) -> None:
    """A container that is needed to show the fault stays in the counterexample."""
    from faults.firing import is_leaf, only_for

    worker = shares.worker("gw0", kinds=KINDS[:1], corpus={FAMILY: ()})
    with only_for(is_leaf), pytest.raises(Unexplained, match=r"BW-02 .*: not fired at net#0"):
        worker.explore(FAMILY, "cpu", 50)
    (kept,) = [decode(line["content"]) for line in shares.lines() if line["type"] == "topology"][-1:]
    assert modules_source(kept).splitlines()[0] == "net = nn.Sequential(nn.Linear(1, 1, bias=False))"


def test_an_exploration_that_finds_something_is_a_failed_item(shares: Shares) -> None:
    exploration = Exploration(shares.worker("gw0", kinds=KINDS[:1]), FAMILY, "cpu", 20)
    exploration.check()
    with receiving(each(lambda g: g * 2)), pytest.raises(pytest.fail.Exception, match="wrong values"):
        replace(exploration, session=shares.worker("gw1", kinds=KINDS[:1])).check()
