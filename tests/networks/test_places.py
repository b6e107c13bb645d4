"""What compares two devices, and what knows of their kernels, proved on one: the second device is a stand-in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
import torch
from faults.engine import Fault
from faults.on_networks import OFFERED

from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.ledger import Ledger, applying, load
from hookcheck.contract.verdict import CaseResult
from hookcheck.networks import examine as examining
from hookcheck.networks.judge import judge
from hookcheck.probe.observation import Observation
from hookcheck.probe.run import observe, release
from hookcheck.suite import conformance_folder
from hookcheck.topology.catalogue import layer_classes, op_classes
from hookcheck.topology.corpus import read
from hookcheck.topology.cuda_kernels import UNORDERED
from hookcheck.topology.layers.loss_classes import NLLLoss
from hookcheck.topology.model import Call, Module, Topology

from .cases import H, X, Y, case, gaps, net, raising

NETWORKS = read(conformance_folder() / "corpus", "multi-node")[:6]
FAULTS = {fault.what: fault for fault in OFFERED}


def on_a_stand_in(monkeypatch: pytest.MonkeyPatch, fault: Fault | None, kinds: tuple[str, ...]) -> list[CaseResult]:
    """The results on a second device, which is the CPU under a ``fault``; the CPU itself is without."""

    def seen(topology: Topology, numbers: Mapping[str, Any], kind: str | None, device: str = "cpu", *rest: Any) -> Any:
        with fault.patch() if fault and device != "cpu" and kind else nullcontext():
            seen: Observation = observe(topology, numbers, kind, "cpu", *rest)
        here = tuple(event._replace(devices=(device,) * len(event.devices)) for event in seen.events)
        return replace(seen, events=here)

    monkeypatch.setattr(examining, "observe", seen)
    about = [clause for clause in CLAUSES.values() if clause.id in ("PL-01", "PL-02")]
    return [r for t in NETWORKS for r in examining.examine(t, "multi-node", kinds, about, Ledger(()), "cuda")]


def test_two_devices_alike_conform(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = ("full_backward", "full_backward_pre", "tensor", "output_tensor", "forward", "acting_full_backward")
    results = on_a_stand_in(monkeypatch, None, kinds)
    assert [result.deviations for result in results if result.deviations] == []
    assert {clause for result in results for clause in result.judged} == {"PL-01", "PL-02"}


@pytest.mark.parametrize(
    "what",
    [
        "grad_input is one part in a thousand too large",
        "grad_input is all None",
        "grad_input lacks its last entry",
        "gradients are cast to float32",
        "hooks are called twice",
        "every second call of a hook is left out",
    ],
)
def test_a_device_with_a_fault_is_caught(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    results = on_a_stand_in(monkeypatch, FAULTS[what], ("full_backward",))
    assert {d.clause for result in results for d in result.deviations} == {"PL-02"}


POOLED = net(Call("h", "a", (X,)), Call("y", "pool", (H,)), gives=Y)
POOLED = replace(POOLED, children=(*POOLED.children, ("pool", NLLLoss())))


def rounding(device: str, by: float, module: Module = POOLED) -> list[tuple[str, str]]:
    """What is found on a device where hooks change a gradient and an output by so many parts."""
    there = case()
    topology = replace(there.topology, module=module)
    gradients = {name: None if g is None else g * (1 + by) for name, g in there.plain.gradients.items()}
    values = {name: value * (1 + by) for name, value in there.plain.values.items()}
    seen = replace(there.observed, gradients=gradients, values=values)
    return gaps(replace(there, topology=topology, device=device, observed=seen), "OB-02", "OB-03")


def test_only_a_device_without_an_ordered_kernel_may_round_differently() -> None:
    rounded, wrong = ([(clause, gap) for clause in ("OB-02", "OB-03")] for gap in ("other rounding", "wrong values"))
    assert rounding("cuda", 2.0**-50) == []
    assert rounding("cpu", 2.0**-50) == rounded
    assert rounding("cuda", 2.0**-50, case().topology.module) == rounded
    assert rounding("cuda", 2.0**-5) == wrong


@pytest.mark.parametrize("id", ["AG-01", "PL-02"])
def test_complex_gates_are_known_to_lack_a_kernel_on_a_device_alone(id: str) -> None:
    there = raising(case(), "RuntimeError", text="\"_thnn_fused_gru_cell_cuda\" not implemented for 'ComplexDouble'")
    there = replace(there, device="cuda", plain=there.observed, elsewhere=case().observed)
    for device, entry in (("cuda", "complex-gates-without-a-kernel"), ("cpu", None)):
        ledger = applying(load(), "2.13.0", device)
        findings = judge(there, [CLAUSES[id]]).findings
        assert [f.finding.gap for f in findings] == ["raised"]
        for features in ({"module": frozenset({"Composite", "GRUCell"})}, {"module": frozenset({"Composite"})}):
            known = ledger.explain(id, "mixed-dtype", "full_backward", findings[0].finding, features)
            assert known == (entry if "GRUCell" in features["module"] else None)


def test_the_layers_without_an_ordered_kernel_are_those_that_torch_names() -> None:
    names = {*layer_classes(), *op_classes()}
    assert UNORDERED.keys() <= names
    said = torch.use_deterministic_algorithms.__doc__ or ""
    raising = said.partition("operations will throw a")[2].partition("In addition")[0]
    listed = set(re.findall(r"`~?(torch\.[\w.]+)`", raising))
    assert {name for name in names if f"torch.nn.{name}" in listed} <= UNORDERED.keys()
    if release(torch.__version__) >= (2, 0):
        assert set(UNORDERED.values()) - listed <= {
            "torch.nn.MaxPool3d",
            *(f"torch.nn.ReplicationPad{d}d" for d in "123"),
        }
