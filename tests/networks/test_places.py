"""What compares two devices, and what knows of their kernels, proved on one: the second device is a stand-in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from faults.engine import Fault
from faults.on_networks import OFFERED

from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.ledger import Ledger, applying, load
from hookcheck.contract.verdict import NOT_RUN, CaseResult
from hookcheck.networks import examine as examining
from hookcheck.networks.features import network_features
from hookcheck.networks.judge import judge
from hookcheck.oracle.expected import Expected
from hookcheck.oracle.tolerance import close
from hookcheck.probe.observation import Observation
from hookcheck.probe.run import observe
from hookcheck.releases.numbers import release
from hookcheck.suite import conformance_folder
from hookcheck.topology.catalogue import layer_classes, op_classes
from hookcheck.topology.corpus import read
from hookcheck.topology.cuda_kernels import OPAQUE, UNORDERED
from hookcheck.topology.layers.convolution import Conv2d
from hookcheck.topology.layers.loss_classes import NLLLoss
from hookcheck.topology.layers.normalisation import RMSNorm
from hookcheck.topology.layers.padding import ReflectionPad2d
from hookcheck.topology.model import Call, Grad, Input, Module, Topology
from hookcheck.topology.primitive import Array
from hookcheck.topology.values import values

from .cases import CALLED, FROM_Y, TWICE, H, V, X, Y, case, gaps, net, raising

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


def test_opaque_layers_are_layers() -> None:
    assert OPAQUE.keys() <= {*layer_classes()}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_what_makes_nodes_of_its_own_on_a_device_is_not_compared_there(device: str) -> None:
    """A hook that is called twice there is told of where nothing is opaque."""
    normed = case(RMSNorm((1,), 0.5, elementwise_affine=False), device=device)
    twice = replace(normed.observed, events=normed.observed.events * 2)
    deviating = gaps(replace(normed, device="cuda", observed=twice, elsewhere=normed.observed), "PL-02")
    assert deviating == ([] if device == "cuda" else [("PL-02", "fired too often")])


def test_in_what_order_nodes_run_that_backward_makes_is_not_compared() -> None:
    asked = Grad("g", (Y,), (X,), (V,), create_graph=True)
    for main, deviating in {(CALLED, FROM_Y): [("PL-02", "wrong order")], (CALLED, asked, FROM_Y): []}.items():
        there = case(TWICE, main)
        turned = replace(there.observed, events=there.observed.events[::-1])
        here = replace(there, device="cuda", observed=turned, elsewhere=there.observed)
        assert gaps(here, "PL-02") == deviating


def test_numbers_that_rounding_explains_on_each_device_differ_by_no_fault() -> None:
    """As far as this very network rounds, at a second look; the same distance beyond that is told of."""
    there = case()
    (event,) = there.observed.events
    for by, known in {2.0**-34: True, 2.0**-9: False}.items():
        off = event._replace(arguments=tuple(tuple(g * (1 + by) for g in side) for side in event.arguments))
        here = replace(there, device="cuda", observed=replace(there.observed, events=(off,)), elsewhere=there.observed)
        here.expected.__dict__["allowance"] = lambda gradient: abs(gradient) * 2.0**-30
        assert gaps(here, "PL-02") == [("PL-02", "wrong values")]
        assert gaps(replace(here, measured=True), "PL-02") == ([] if known else [("PL-02", "wrong values")])


def gathered(v: Array, sides: tuple[int, int], padding: tuple[int, int, int, int]) -> Array:
    """The gradient of ReflectionPad2d as the kernel that sums in one order gathers it on 2.11.0: of the corners in a
    mirrored row that on the left, or else that on the right (``reflection_pad2d_backward_det_out_kernel``)."""
    left, right, top, bottom = padding
    high, wide = sides
    gradient = np.zeros(sides)
    for row, column in product(range(high), range(wide)):
        rows = [-row] * (1 <= row <= top) + [2 * high - 2 - row] * (high - bottom - 1 <= row < high - 1)
        columns = [-column] * (1 <= column <= left) + [2 * wide - 2 - column] * (wide - right - 1 <= column < wide - 1)
        read = [(row, other) for other in (column, *columns)]
        read += [(other, place) for other in rows for place in (column, *columns[:1])]
        gradient[row, column] = sum(v[i + top, j + left] for i, j in read)
    return gradient


@pytest.mark.parametrize("sides", [(2, 2), (2, 3), (3, 2), (3, 4), (4, 3), (4, 5)])
def test_corners_are_lost_where_the_ledger_says(sides: tuple[int, int]) -> None:
    words = set()
    high, wide = sides
    most = [range(min(3, side)) for side in (wide, wide, high, high)]
    for left, right, top, bottom in product(*most):
        padding = (left, right, top, bottom)
        inputs = (Input("x", (1, 1, *sides), True), Input("v", (1, 1, high + top + bottom, wide + left + right)))
        topology = Topology(ReflectionPad2d(padding), inputs, (CALLED, FROM_Y), dtype="float64")
        expected = Expected(topology, values(topology))
        gradient = expected.leaf_gradients["x"][0, 0]
        wrong = not close(gathered(expected.numbers["v"][0, 0], sides, padding), gradient, "float64", "cuda")
        (word,) = network_features(expected)["mirrored"]
        assert wrong is (word == "both")
        words.add(word)
    assert words == ({"both", "one"} if sides[1] > 2 else {"one"})


def test_a_convolution_mirrors_too() -> None:
    for wide, word in ((3, "both"), (4, "one")):
        layer = Conv2d(1, 1, (1, 1), padding=(1, 1), padding_mode="reflect")
        inputs = (Input("x", (1, 1, 2, wide), True), Input("v", (1, 1, 4, wide + 2)))
        topology = Topology(layer, inputs, (CALLED, FROM_Y))
        assert network_features(Expected(topology, values(topology)))["mirrored"] == {word}


def test_what_is_for_the_cpu_alone_is_not_run_elsewhere() -> None:
    inputs = (Input("x", (1,), tensor="MKLDNN"), Input("v", (1,)))
    topology = Topology(case().topology.module, inputs, (CALLED, FROM_Y), dtype="float32")
    (result,) = examining.examine(topology, "tensor-class", ["forward"], [], Ledger(()), "cuda")
    assert (result.outcome, result.reason) == (NOT_RUN, "the topology is about cpu")
