"""One topology from data to results."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from hookcheck.contract import examine as module
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.examine import examine
from hookcheck.contract.judge import unexplained
from hookcheck.contract.ledger import Ledger, applying, load
from hookcheck.contract.verdict import NOT_OFFERED, NOT_RUN, RAN, CaseResult
from hookcheck.probe.kinds import KINDS
from hookcheck.topology.codec import identify
from hookcheck.topology.model import Topology, Within

from .cases import CALLED, case

PLAIN = case().topology


def examined(t: Topology, ledger: Ledger | None = None) -> list[CaseResult]:
    return list(examine(t, "multi-node", KINDS, CLAUSES.values(), ledger or Ledger(())))


def test_there_is_a_result_for_every_hook_kind_in_order() -> None:
    results = examined(PLAIN)
    assert [r.kind for r in results] == list(KINDS)
    assert {(r.family, r.topology, r.origin, r.outcome, r.reason) for r in results} == {
        ("multi-node", identify(PLAIN), "corpus", RAN, "")
    }
    assert results[1].deviations == ()
    assert results[1].judged["GI-01"] == 1
    assert "P2-11" not in results[1].judged


def test_torch_runs_once_a_kind_and_once_without_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[object] = []
    observe = module.observe
    monkeypatch.setattr(module, "observe", lambda t, n, kind, device: runs.append(kind) or observe(t, n, kind, device))
    examined(PLAIN)
    assert runs == [None, *KINDS]


def test_the_ledger_explains_what_it_knows() -> None:
    for result in examined(PLAIN, applying(load(), torch.__version__, "cpu")):
        assert list(unexplained(result.deviations)) == []
    legacy = examined(PLAIN)[0]
    assert list(unexplained(legacy.deviations)) == list(legacy.deviations) != []


def test_a_topology_about_another_device_is_not_run() -> None:
    results = examined(replace(PLAIN, device="cuda"))
    assert {(r.outcome, r.reason) for r in results} == {(NOT_RUN, "the topology is about cuda")}
    assert len(results) == len(KINDS)


def test_what_this_torch_lacks_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "1.8.0")
    results = examined(replace(PLAIN, main=(Within("inference_mode", (CALLED,)),)))
    assert {(r.outcome, r.reason) for r in results} == {(NOT_OFFERED, "inference_mode came with torch 1.9")}


def test_a_hook_kind_that_this_torch_lacks_is_not_offered_and_the_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.nn.Module, "register_full_backward_hook")
    assert [r.outcome for r in examined(PLAIN)] == [RAN, NOT_OFFERED, RAN, RAN]
