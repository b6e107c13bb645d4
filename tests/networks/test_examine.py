"""One topology from data to results."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest
import torch
from faults.engine import each, receiving
from packaging.specifiers import SpecifierSet

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAUSES, Clause
from hookcheck.contract.evidence import Evidence
from hookcheck.contract.explaining import unexplained
from hookcheck.contract.ledger import Entry, Ledger, applying, load
from hookcheck.contract.site import CLOSE, VALUE, Site
from hookcheck.contract.verdict import NOT_OFFERED, NOT_RUN, RAN, CaseResult
from hookcheck.hooks.kinds import KINDS
from hookcheck.networks import examine as module
from hookcheck.networks.case import Case
from hookcheck.networks.examine import examine
from hookcheck.networks.judge import Judgements
from hookcheck.oracle.expected import Expected
from hookcheck.suite import conformance_folder
from hookcheck.topology.codec import identify
from hookcheck.topology.corpus import read
from hookcheck.topology.families import FAMILIES
from hookcheck.topology.layers.activation import ReLU6
from hookcheck.topology.layers.dropout import Dropout
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.layers.loss_elementwise import PoissonNLLLoss
from hookcheck.topology.layers.loss_margins import SoftMarginLoss
from hookcheck.topology.layers.normalisation import LayerNorm
from hookcheck.topology.model import Apply, Backward, Call, Composite, Input, Topology, Within
from hookcheck.topology.ops import Add
from hookcheck.topology.ops.elementwise import Clamp, Scale
from hookcheck.topology.tree import Ref

from .cases import CALLED, case

PLAIN = case().topology


KNOWN = Entry(
    id="known",
    clauses=("GI-01",),
    kinds=("full_backward",),
    torch=SpecifierSet(">=1.8"),
    instead=("wrong values",),
    why="It is twice what it should be.",
    link="https://example.org",
    reviewed=date(2026, 1, 31),
)
"""An entry for all families."""


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


def test_what_was_worked_out_goes_with_its_topology() -> None:
    """Graphs that outlive it add up: seven large networks that were drawn one after the other took 130 MiB."""

    def worked_out() -> set[int]:
        gc.collect()
        return {id(instance) for instance in gc.get_objects() if type(instance) is Expected}

    before = worked_out()
    with receiving(each(lambda g: g * 2)):
        examined(PLAIN, Ledger((KNOWN,)))
    assert worked_out() <= before


def test_the_ledger_explains_what_it_knows() -> None:
    with receiving(each(lambda g: g * 2)):
        (legacy, full, *_), without = examined(PLAIN, Ledger((KNOWN,))), examined(PLAIN)
    assert [(d.clause, d.ledger) for d in full.deviations] == [("GI-01", "known")]
    assert [(d.relation, d.site) for d in full.deviations] == [(CLOSE, Site(VALUE, "grad_input"))]
    assert list(unexplained(legacy.deviations)) == list(legacy.deviations) != []
    assert list(unexplained(without[1].deviations)) == list(without[1].deviations) != []


ON_A_BOUND = Topology(
    Composite(
        (("part", Composite((("act", ReLU6()),), ("x",), (Call("h", "act", (Ref("x"),)),), Ref("h"))),),
        ("x",),
        (Call("h", "part", (Ref("x"),)), Apply("y", Clamp(0.0, None), (Ref("h"),))),
        Ref("y"),
    ),
    (Input("x", (1,), True),),
    (Call("y", "", (Ref("x"),)), Backward((Ref("y"),))),
)
"""What is flat below 0 ahead of what is clamped at 0."""


@pytest.mark.parametrize("slope", [0.0, 1.0])
@pytest.mark.parametrize(("x", "on_a_kink"), [(-1.0, True), (1.0, False)])
def test_at_a_bound_the_slope_of_clamp_may_be_either(
    x: float, on_a_kink: bool, slope: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is 1 up to 2.13 and 0 from then on (pytorch#191142); elsewhere it must be what it is."""

    class Clamped(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x.relu()

        @staticmethod
        def backward(ctx: Any, v: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            return v * torch.where(x > 0, float(on_a_kink or slope), slope)

    monkeypatch.setattr(torch.Tensor, "clamp", lambda x, *bounds: Clamped.apply(x))
    numbers = {"x": np.array([x])}
    monkeypatch.setattr(module, "values", lambda topology: numbers)
    result = examined(ON_A_BOUND)[1]
    assert result.outcome == RAN
    assert bool(result.deviations) is (not on_a_kink and not slope)


def test_what_is_none_counts_at_a_bound_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "values", lambda topology: {"x": np.array([-1.0])})
    assert not examined(ON_A_BOUND)[1].deviations
    with receiving(each(lambda g: None)):
        assert "GI-02" in {d.clause for d in examined(ON_A_BOUND)[1].deviations}


def test_a_dropout_that_does_not_scale_what_it_keeps_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = (Input("x", (2, 3), True), Input("v", (2, 3)))
    masked = Topology(Dropout(keeps=(True, False, False, True, True, False)), inputs, PLAIN.main)

    def deviating() -> set[str]:
        results = examine(masked, "train-eval", ["full_backward"], CLAUSES.values(), Ledger(()))
        return {deviation.clause for result in results for deviation in result.deviations}

    assert deviating() == set()
    dropout = torch.nn.functional.dropout
    monkeypatch.setattr(torch.nn.functional, "dropout", lambda x, p, *settings: dropout(x, p, *settings) * (1 - p))
    assert "GI-01" in deviating()


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
    lacking = [name for name, kind in KINDS.items() if kind.register == "register_full_backward_hook"]
    assert [r.kind for r in examined(PLAIN) if r.outcome == NOT_OFFERED] == lacking
    assert {r.outcome for r in examined(PLAIN) if r.kind not in lacking} == {RAN}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_judged_once_for_two_kinds_is_what_each_of_them_gets_alone(family: str) -> None:
    ledger = applying(load(), torch.__version__, "cpu")
    for t in read(conformance_folder() / "corpus", family)[:1]:
        alone = [result for kind in KINDS for result in examine(t, family, [kind], CLAUSES.values(), ledger)]
        assert list(examine(t, family, KINDS, CLAUSES.values(), ledger)) == alone


def test_two_kinds_that_see_the_same_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[tuple[str, bool]] = []
    judge = module.judge
    monkeypatch.setattr(
        module, "judge", lambda c, clauses: judged.append((c.kind.name, c.measured)) or judge(c, clauses)
    )
    results = examined(PLAIN)
    first = [kind for kind, again in judged if not again]
    assert first[:2] == ["backward", "full_backward"]
    assert not any(kind.startswith("global_") for kind in first)
    deviating = [r.kind for r in results if r.deviations]
    assert [kind for kind, again in judged if again] == [k for k in deviating if not k.startswith("global_")] != []
    assert any(k.startswith("global_") for k in deviating)


NEARLY_EQUAL = [[k * 2.0**-20 for k in (0, 1, 3, 7)]]
NORMALISED = Topology(
    LayerNorm((4,), eps=1e-30, elementwise_affine=False),
    (Input("x", (1, 4), True), Input("u", (1,)), Input("v", (1, 4))),
    (Apply("s", Add(), (Ref("x"), Ref("u"))), Call("y", "", (Ref("s"),)), Backward((Ref("y"),), (Ref("v"),))),
    dtype="float32",
)
"""A normalisation of nearly equal numbers: it amplifies rounding beyond the table of tolerances."""


FIRST, BESIDE, MEASURED = (False, False), (True, False), (True, True)
"""The looks at a case: as it is, beside boundaries of our own, and with what rounding does to it."""


def noted_looks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, bool]]:
    """A list that each look at a case is noted in."""
    noted: list[tuple[bool, bool]] = []
    judge = module.judge

    def noting(case: Case, clauses: Iterable[Clause]) -> Judgements:
        noted.append((case.bounded is not None, case.measured))
        return judge(case, clauses)

    monkeypatch.setattr(module, "judge", noting)
    return noted


def normalised(monkeypatch: pytest.MonkeyPatch, factor: float) -> tuple[list[tuple[bool, bool]], CaseResult]:
    """What becomes of it with gradients off by ``factor``, and how it was looked at."""
    numbers = {"x": np.array(NEARLY_EQUAL), "u": np.array([1.0]), "v": np.array([[1.0, -2.0, 0.5, 3.0]])}
    monkeypatch.setattr(module, "values", lambda _: numbers)
    looks = noted_looks(monkeypatch)
    clauses = [CLAUSES[id] for id in ("GI-01", "GO-01")]
    with receiving(each(lambda g: g * factor)):
        (result,) = examine(NORMALISED, "multi-node", ["full_backward"], clauses, Ledger(()))
    return looks, result


def test_what_rounding_explains_conforms_at_the_last_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, result = normalised(monkeypatch, 1 + 2.0**-9)
    assert looks == [FIRST, BESIDE, MEASURED]
    assert result.deviations == ()
    assert dict(result.judged) == {"GI-01": 1, "GO-01": 1}


def test_what_no_rounding_explains_deviates_at_the_last_look_too(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, result = normalised(monkeypatch, 100)
    assert looks == [FIRST, BESIDE, MEASURED]
    assert [(d.clause, d.gap) for d in result.deviations] == [("GI-01", "wrong values")]


def test_what_the_ledger_explains_gets_no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = noted_looks(monkeypatch)
    with receiving(each(lambda g: g * 2)):
        results = list(examine(PLAIN, "multi-node", KNOWN.kinds, [CLAUSES["GI-01"]], Ledger((KNOWN,))))
    assert [d.ledger for r in results for d in r.deviations] == ["known"]
    assert looks == [FIRST]


def test_what_boundaries_of_our_own_explain_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = noted_looks(monkeypatch)
    entry = replace(KNOWN, when=(("boundaries", ("the same",)),))
    with receiving(each(lambda g: g * 2)):
        (result,) = examine(PLAIN, "multi-node", ["full_backward"], [CLAUSES["GI-01"]], Ledger((entry,)))
    assert ([d.ledger for d in result.deviations], looks) == (["known"], [FIRST, BESIDE])


def wide(width: int) -> Topology:
    """A Linear on a 2-D input."""
    inputs = (Input("x", (2, width), True), Input("v", (2, width)))
    return replace(PLAIN, module=Linear(width, width), inputs=inputs)


def put_into_words(t: Topology, ledger: Ledger, evidence: Evidence | None) -> set[bool]:
    with receiving(each(lambda g: g * 2)):
        results = list(examine(t, "multi-node", KNOWN.kinds, [CLAUSES["GI-01"]], ledger, evidence=evidence))
    return {deviation.worded for result in results for deviation in result.deviations}


def test_of_what_the_ledger_explains_the_smallest_topology_is_put_into_words() -> None:
    ledger, evidence = Ledger((KNOWN,)), Evidence()
    assert put_into_words(wide(3), ledger, evidence) == {True}
    assert put_into_words(wide(4), ledger, evidence) == {False}
    assert put_into_words(wide(2), ledger, evidence) == {True}
    assert put_into_words(wide(4), ledger, None) == {True}


def test_what_the_ledger_does_not_explain_is_always_put_into_words() -> None:
    evidence = Evidence()
    assert put_into_words(wide(2), Ledger(()), evidence) == put_into_words(wide(3), Ledger(()), evidence) == {True}


@pytest.mark.parametrize(("by", "dtype"), [(1.0, "float32"), (64.0, "float64")])
def test_what_the_dtype_can_hold_is_judged(by: float, dtype: str) -> None:
    (result,) = examine(exponential(by, dtype), "multi-input", ("full_backward",), CLAUSES.values(), Ledger(()))
    assert result.judged
    assert not result.deviations


@pytest.mark.parametrize("kind", ["full_backward", "forward", "tensor"])
def test_nothing_is_said_of_a_run_in_which_a_number_is_too_large_to_hold(kind: str) -> None:
    """exp(64 x) is more than float32 holds and has a formula still: torch finds an infinite loss."""
    (result,) = examine(exponential(64.0, "float32"), "multi-input", (kind,), CLAUSES.values(), Ledger(()))
    assert (result.outcome, result.judged, result.deviations) == (RAN, {}, ())


def test_nor_where_a_step_of_small_numbers_overflows_within() -> None:
    """log(1 + exp(64 x)) is as small as its argument, and torch takes it for infinite in float32."""
    inputs = (Input("x", (8,), requires_grad=True), Input("t", (8,), domain="sign"))
    steps = (Apply("z", Scale(64.0), (Ref("x"),)), Call("h", "loss", (Ref("z"), Ref("t"))))
    body = Composite((("loss", SoftMarginLoss("sum")),), ("x", "t"), steps, Ref("h"))
    t = Topology(body, inputs, (Call("y", "", (Ref("x"), Ref("t"))), Backward((Ref("y"),))), dtype="float32")
    (result,) = examine(t, "multi-input", ("full_backward",), CLAUSES.values(), Ledger(()))
    assert (result.outcome, result.judged, result.deviations) == (RAN, {}, ())


def exponential(by: float, dtype: str) -> Topology:
    """The sum of ``exp(by · x) − t · by · x``."""
    steps = (Apply("z", Scale(by), (Ref("x"),)), Call("h", "loss", (Ref("z"), Ref("t"))))
    body = Composite((("loss", PoissonNLLLoss(reduction="sum")),), ("x", "t"), steps, Ref("h"))
    inputs = (Input("x", (8,), requires_grad=True), Input("t", (8,), domain="positive"))
    return Topology(body, inputs, (Call("y", "", (Ref("x"), Ref("t"))), Backward((Ref("y"),))), dtype=dtype)
