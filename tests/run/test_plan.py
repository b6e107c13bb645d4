"""What is asked for, what is planned, and the record that part files add up to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.verdict import CRASHED, NOT_RUN, RAN, CaseResult, Deviation
from hookcheck.errors import HookcheckError
from hookcheck.hooks.siblings import share
from hookcheck.programs.program import Program, chapters
from hookcheck.record.checks import check
from hookcheck.record.lines import case_line
from hookcheck.record.model import Record, Torch
from hookcheck.record.parts import Part
from hookcheck.run.plan import (
    LEFT_OUT,
    SLOW,
    SMOKE,
    Request,
    all_families,
    all_kinds,
    chosen,
    corpora,
    discard_parts,
    from_controller,
    planned_networks,
    record,
    request,
    session,
    smoke,
    stands,
    to_workers,
)
from hookcheck.topology.codec import encode, identify
from hookcheck.topology.corpus import CorpusError, write
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Backward, Call, Input, Topology
from hookcheck.topology.tree import Ref

TORCH = Torch("2.13.0+cpu", "0123abc", None)
RUN = (Call("y", "", (Ref("x"),)), Backward((Ref("y"),), (Ref("v"),)))


def linear(width: int) -> Topology:
    return Topology(Linear(width, 1), (Input("x", (width,), True), Input("v", (1,))), RUN)


SMALL, LARGE, NEW = linear(1), linear(3), linear(2)


@pytest.fixture
def asked(tmp_path: Path) -> Request:
    """One hook kind on the two topologies of one family."""
    write(tmp_path / "corpus", "multi-node", [LARGE, SMALL])
    return ask(tmp_path, families=["multi-node"], kinds=["full_backward"])


def ask(folder: Path, **changes: Any) -> Request:
    given: dict[str, Any] = {
        "families": [],
        "kinds": [],
        "clauses": [],
        "device": "cpu",
        "reports": str(folder / "reports"),
        "corpus": str(folder / "corpus"),
        "profile": "default",
        "examples": 60,
        "seed": 0,
        "started": "2026-11-21T04:40:00Z",
        "run": "1",
    }
    return request(**{**given, **changes})


def ran(topology: Topology, *deviations: Deviation, origin: str = "corpus", outcome: str = RAN) -> CaseResult:
    reason = "" if outcome == RAN else "it did"
    judged = {"GI-01": 1} if outcome == RAN else {}
    return CaseResult("multi-node", identify(topology), "full_backward", origin, outcome, reason, judged, deviations)


def left(asked: Request, *results: CaseResult, topologies: tuple[Topology, ...] = (), worker: str = "gw0") -> None:
    """Writes what a worker leaves."""
    part = Part(asked.parts / "cpu" / f"{worker}.jsonl")
    for result in results:
        part.append(case_line(result))
    for topology in topologies:
        part.append({"type": "topology", "topology": identify(topology), "content": encode(topology)})
    part.close()


def recorded(asked: Request, stopped: str = "") -> Record:
    run_record = record(asked, "cpu", TORCH, stopped)
    check(run_record.folded(), Path("record.jsonl"))
    return run_record


def test_nothing_named_means_all(tmp_path: Path) -> None:
    whole = ask(tmp_path)
    assert (whole.families, whole.kinds, whole.clauses) == (all_families(), all_kinds(), tuple(CLAUSES))
    assert whole.whole
    assert chosen(whole) == tuple(CLAUSES.values())


def test_what_is_named_twice_is_asked_for_once(tmp_path: Path) -> None:
    names: dict[str, list[str]] = {"families": ["residual"] * 2, "kinds": ["forward"] * 2, "clauses": ["FN-01"] * 2}
    twice = ask(tmp_path, **names)
    assert (twice.families, twice.kinds, twice.clauses) == (("residual",), ("forward",), ("FN-01",))


@pytest.mark.parametrize("part", [{"families": ["multi-node"]}, {"kinds": ["backward"]}, {"clauses": ["GI-01"]}])
def test_a_part_is_not_the_whole(tmp_path: Path, part: dict[str, list[str]]) -> None:
    assert not ask(tmp_path, **part).whole


@pytest.mark.parametrize(("device", "devices"), [("cpu", ("cpu",)), ("cuda", ("cuda",)), ("all", ("cpu", "cuda"))])
def test_devices(tmp_path: Path, device: str, devices: tuple[str, ...]) -> None:
    assert ask(tmp_path, device=device).devices == devices


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"device": "tpu"}, "unknown device 'tpu'; choose from cpu, cuda, all"),
        ({"families": ["cousins"]}, "unknown family 'cousins'; choose from single-node, .*"),
        ({"kinds": ["sideways"]}, "unknown hook kind 'sideways'; choose from backward, .*"),
        ({"clauses": ["XX-1"]}, "unknown clause 'XX-1'; `hookcheck list` shows them all"),
    ],
)
def test_what_is_unknown_is_refused(tmp_path: Path, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(HookcheckError, match=f"^{message}$"):
        ask(tmp_path, **wrong)


def test_a_worker_gets_the_request_as_it_was_made(asked: Request) -> None:
    assert from_controller(to_workers(asked)) == asked
    assert all(isinstance(value, (str, int, list)) for value in to_workers(asked).values())


def test_a_corpus_that_is_missing_is_named(asked: Request) -> None:
    assert corpora(asked) == {"multi-node": (LARGE, SMALL)}
    with pytest.raises(CorpusError, match=r"single-node\.jsonl cannot be read"):
        corpora(replace(asked, families=("single-node",)))


def test_a_session_is_the_share_of_one_worker(asked: Request) -> None:
    share = session(asked, "gw3", "2.13.0")
    assert (share.worker, share.parts, share.corpus["multi-node"]) == ("gw3", asked.parts, (LARGE, SMALL))
    assert set(share.ledgers) == {"cpu"}


def test_siblings_share_the_corpus_where_no_kind_is_named(tmp_path: Path) -> None:
    write(tmp_path / "corpus", "multi-node", [LARGE, SMALL], {identify(SMALL): ["acting_forward", "backward"]})
    whole = ask(tmp_path, families=["multi-node"])
    assert whole.shared
    assert [*planned_networks(whole)] == [
        ("multi-node", identify(topology), kind)
        for topology, named in ((LARGE, ()), (SMALL, ("acting_forward", "backward")))
        for kind in share(identify(topology), named)
    ]
    assert session(whole, "gw0", "2.13.0").shares == {
        "multi-node": {
            identify(LARGE): share(identify(LARGE)),
            identify(SMALL): share(identify(SMALL), ["acting_forward", "backward"]),
        }
    }


@pytest.mark.parametrize("part", [{"kinds": ["backward", "forward"]}, {"profile": "thorough"}])
def test_each_kind_is_run_where_it_is_named_or_in_the_profile_thorough(tmp_path: Path, part: dict[str, Any]) -> None:
    write(tmp_path / "corpus", "multi-node", [LARGE])
    named = ask(tmp_path, families=["multi-node"], **part)
    assert not named.shared
    assert [*planned_networks(named)] == [("multi-node", identify(LARGE), kind) for kind in named.hook_kinds]
    assert session(named, "gw0", "2.13.0").shares is None


def test_what_is_missing_in_the_parts_was_left_out(asked: Request) -> None:
    left(asked, ran(SMALL))
    run_record = recorded(asked)
    assert {c.topology: (c.outcome, c.reason) for c in run_record.cases} == {
        identify(SMALL): (RAN, ""),
        identify(LARGE): (NOT_RUN, LEFT_OUT),
    }
    assert dict(run_record.footer.counts) == {
        "planned": 2, "ran": 1, "not offered": 0, "not run": 1, "crashed": 0, "timed out": 0,
    }  # fmt: skip
    assert run_record.footer.complete


def test_what_an_interrupted_run_did_not_reach_says_why(asked: Request) -> None:
    left(asked, ran(SMALL))
    run_record = recorded(asked, "interrupted by the user")
    assert [c.reason for c in run_record.cases if c.outcome == NOT_RUN] == ["interrupted by the user"]
    assert (run_record.footer.complete, run_record.footer.stopped) == (False, "interrupted by the user")


def test_a_crash_in_one_part_outweighs_what_ran_in_another(asked: Request) -> None:
    left(asked, ran(SMALL), ran(LARGE))
    left(asked, ran(SMALL, outcome=CRASHED), worker="gw1")
    assert [c.outcome for c in recorded(asked).cases if c.topology == identify(SMALL)] == [CRASHED]


def test_the_smallest_deviating_topology_is_kept_with_its_source(asked: Request) -> None:
    deviation = Deviation("GI-01", "net#0", "wrong values", "1", "2")
    left(asked, ran(SMALL), ran(LARGE, deviation))
    (counterexample,) = recorded(asked).counterexamples
    assert (counterexample.topology, counterexample.content) == (identify(LARGE), encode(LARGE))
    assert "nn.Linear(3, 1)" in counterexample.source


def test_a_topology_that_exploration_found_is_kept_if_it_is_smaller(asked: Request) -> None:
    deviation = Deviation("GI-01", "net#0", "wrong values", "1", "2")
    left(asked, ran(SMALL), ran(LARGE, deviation), ran(NEW, deviation, origin="exploration"), topologies=(NEW,))
    assert [c.topology for c in recorded(asked).counterexamples] == [identify(NEW)]


def test_the_smallest_that_the_ledger_does_not_explain_is_kept_too(asked: Request) -> None:
    known = Deviation("GI-01", "net#0", "wrong values", "1", "2", "an-entry")
    left(asked, ran(SMALL, known), ran(LARGE, replace(known, ledger=None)))
    assert {c.topology for c in recorded(asked).counterexamples} == {identify(SMALL), identify(LARGE)}


def test_what_exploration_ran_is_not_planned_but_counted(asked: Request) -> None:
    left(asked, ran(SMALL), ran(LARGE), ran(NEW, origin="exploration"), topologies=(NEW,))
    run_record = recorded(asked)
    assert run_record.header.plan.cases == 2
    assert run_record.footer.counts["planned"] == 3


def test_how_many_topologies_were_explored_is_added_up_over_the_workers(asked: Request) -> None:
    for worker, count in (("gw0", 3), ("gw1", 4)):
        part = Part(asked.parts / "cpu" / f"{worker}.jsonl")
        line = {"type": "explored", "family": "multi-node", "round": 0 if worker == "gw0" else 1, "finished": True}
        part.append({**line, "topologies": count})
        part.close()
    assert recorded(asked).footer.explored == 7


def test_a_record_stands_only_if_all_was_asked_for_and_all_was_run(tmp_path: Path, asked: Request) -> None:
    left(asked, ran(SMALL), ran(LARGE))
    run_record = recorded(asked)
    everything = ask(tmp_path)
    assert stands(everything, run_record)
    assert not stands(asked, run_record)
    assert not stands(everything, recorded(asked, "interrupted by the user"))
    discard_parts(asked)
    assert not asked.parts.exists()
    assert not stands(everything, recorded(asked))


def test_a_smoke_test_leaves_out_what_takes_long() -> None:
    families, clauses = smoke()
    assert set(SMOKE) == set(families) <= set(all_families())
    assert set(SLOW) <= set(chapters())
    left_out = [c for id, c in CLAUSES.items() if id not in clauses]
    assert {c.chapter for c in left_out if isinstance(c, Program) and not c.alone} == set(SLOW)
    assert all(isinstance(c, Program) for c in left_out)
