"""Do the committed records say of each release what is known of it? The facts of the design, cell by cell.

A fact that speaks of one layer is looked up in the corpus topologies that are just that layer. What the records must
say is written here from the table of the design, with the corrections that the records led to marked at their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from packaging.version import Version

from hookcheck.contract.verdict import CONFORMS, CaseResult, Deviation
from hookcheck.oracle.expected import Expected
from hookcheck.oracle.gradient import state
from hookcheck.record.model import Record
from hookcheck.record.reading import read as read_record
from hookcheck.suite import conformance_folder
from hookcheck.topology.codec import identify
from hookcheck.topology.corpus import read
from hookcheck.topology.families import FAMILIES
from hookcheck.topology.layers.convolution import Conv2d
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Topology
from hookcheck.topology.values import values

RECORDS = Path(__file__).parents[1] / "reports" / "records"
RELEASES = ["1.8.0", "2.15.0", *(pytest.param(release, marks=pytest.mark.slow) for release in ("2.0.1", "2.13.0"))]
LEGACY, FULL = ("backward", "global_backward"), ("full_backward", "global_full_backward")


@cache
def corpus(family: str) -> dict[str, Topology]:
    return {identify(topology): topology for topology in read(conformance_folder() / "corpus", family)}


@pytest.fixture(scope="module", params=RELEASES)
def record(request: pytest.FixtureRequest) -> Record:
    return read_record(RECORDS / f"torch-{request.param}-cpu.jsonl.gz")


def release(record: Record) -> Version:
    return Version(Version(record.header.torch.version).base_version)


def cases(record: Record, family: str, kinds: tuple[str, ...]) -> Iterator[tuple[Topology, CaseResult]]:
    """The cases of the corpus that ran, with their topologies."""
    for case in record.cases:
        if case.family == family and case.kind in kinds and case.origin == "corpus" and case.outcome == "ran":
            yield corpus(family)[case.topology], case


def verdicts(record: Record, family: str, kinds: tuple[str, ...]) -> dict[str, set[str]]:
    """Every verdict of the family's cells, by clause."""
    by_clause: dict[str, set[str]] = {}
    for cell in record.cells():
        if cell.family == family and cell.kind in kinds:
            by_clause.setdefault(cell.clause, set()).add(cell.verdict)
    return by_clause


def layers(
    record: Record, family: str, kinds: tuple[str, ...], like: Callable[[Topology], bool]
) -> list[dict[str, Deviation]]:
    """The deviations by clause of every case whose topology is one layer and is as ``like`` says; there is one."""
    layer_deviations = [{d.clause: d for d in case.deviations} for t, case in cases(record, family, kinds) if like(t)]
    assert layer_deviations
    return layer_deviations


def gaps(layer_deviations: list[dict[str, Deviation]], clause: str) -> set[str]:
    """How each of the cases deviates from the clause; all of them do."""
    return {deviations[clause].gap for deviations in layer_deviations}


def really(layer_deviations: list[dict[str, Deviation]], clause: str) -> set[str]:
    """What the hooks receive instead, as told by the evidence; there is some."""
    descriptions = {d[clause].observed.rpartition("which is ")[2] for d in layer_deviations if d[clause].worded}
    assert descriptions
    return descriptions


def linear(rank: int, bias: bool) -> Callable[[Topology], bool]:
    return lambda t: (
        isinstance(t.module, Linear)
        and t.module.bias is bias
        and len(t.inputs[0].shape) == rank
        and t.inputs[0].shape[:-1].count(1) < rank - 1
        and t.module.out_features > 1
    )


def test_legacy_conv2d_has_the_parameters_gradients_and_the_first_is_right(record: Record) -> None:
    for bias, third in ((True, "bias"), (False, "None")):
        layer_deviations = layers(
            record,
            "single-node",
            LEGACY,
            lambda t, bias=bias: isinstance(t.module, Conv2d) and t.module.groups == 1 and t.module.bias is bias,
        )
        assert gaps(layer_deviations, "BW-07") == {"extra entries"}
        assert really(layer_deviations, "BW-07") == {f"(input[0], weight, {third})"}
        assert not any("GI-01" in deviations for deviations in layer_deviations)


@pytest.mark.slow
def test_full_is_right_on_conv2d_and_linear(record: Record) -> None:
    for family in ("single-node", "multi-node"):
        judged = verdicts(record, family, FULL)
        for clause in ("BW-01", "BW-02", "BW-05", "BW-07", "GI-01", "GI-02", "GO-01", "GO-02", "GO-03", "OR-01"):
            assert judged[clause] == {CONFORMS}


def test_legacy_linear_on_a_2d_input_begins_with_the_bias(record: Record) -> None:
    layer_deviations = layers(record, "multi-node", LEGACY, linear(rank=2, bias=True))
    assert gaps(layer_deviations, "GI-01") == {"parameter gradients mixed in"}
    # The evidence is the smallest, which may be too narrow for the gap to be told from others by its shape.
    every = layers(record, "multi-node", LEGACY, lambda t: isinstance(t.module, Linear) and t.module.bias)
    flat = [deviations for deviations in every if deviations["GI-01"].gap == "parameter gradients mixed in"]
    assert really(flat, "GI-01") == {"(bias, input[0], weight transposed)"}


def test_legacy_linear_on_a_3d_input_belongs_to_the_bias_addition_or_to_a_view(record: Record) -> None:
    """The design says of 1.12 and later: one entry, of the weight's shape transposed. It is one entry, the output's
    gradient with the leading axes folded; the two shapes agree where rows and in_features are equally many."""
    layer_deviations = layers(record, "multi-node", LEGACY, linear(rank=3, bias=True))
    if release(record) < Version("1.12"):
        assert gaps(layer_deviations, "BW-07") == {"extra entries"}
        assert really(layer_deviations, "BW-07") == {"(output[0], bias)"}
    else:
        assert not any("BW-07" in deviations for deviations in layer_deviations)
        assert really(layer_deviations, "GI-01") == {"(output[0] reshaped,)"}


@pytest.mark.slow
def test_no_input_requires_grad(record: Record) -> None:
    assert verdicts(record, "no-grad-input", LEGACY)["BW-03"] == {CONFORMS}
    gaps = {d.gap for _, c in cases(record, "no-grad-input", FULL) for d in c.deviations if d.clause == "BW-03"}
    assert gaps == ({"not fired", "raised"} if release(record) < Version("1.9") else set())
    warned = [d for _, c in cases(record, "no-grad-input", FULL) for d in c.deviations if d.clause == "OB-05"]
    assert bool(warned) is (release(record) >= Version("2.8"))
    assert all("no inputs require gradients" in d.observed for d in warned if d.worded)
    assert {d.ledger for d in warned if d.worded} == {
        d.ledger for d in warned
    }  # each by the text that its entry asks for


def test_without_a_gradient_grad_input_is_none_for_full_and_not_for_legacy(record: Record) -> None:
    legacy = [d for _, c in cases(record, "no-grad-input", LEGACY) for d in c.deviations if d.clause == "GI-02"]
    assert {d.gap for d in legacy} == {"a gradient instead of None"}
    assert "GI-02" not in {d.clause for _, c in cases(record, "no-grad-input", FULL) for d in c.deviations}


def test_loss_on_an_intermediate_only(record: Record) -> None:
    legacy = [d for _, c in cases(record, "intermediate-loss", LEGACY) for d in c.deviations if d.clause == "BW-02"]
    assert {d.gap for d in legacy} == {"not fired"}
    full = [d for _, c in cases(record, "intermediate-loss", FULL) for d in c.deviations if d.clause == "BW-02"]
    assert {d.gap for d in full} == ({"raised"} if release(record) < Version("1.13") else {"not fired"})
    raised = [d for d in full if d.gap == "raised"]
    assert all(d.observed.startswith("RuntimeError") for d in raised if d.worded)
    assert {d.ledger for d in raised if d.worded} == {d.ledger for d in raised}


def test_forward_under_no_grad_with_an_input_that_requires_grad(record: Record) -> None:
    """Legacy is not called, save where the module itself switches grad back on, of which the design does not speak."""
    full = [d for _, c in cases(record, "no-grad-evaluation", FULL) for d in c.deviations if d.clause == "NG-01"]
    if release(record) < Version("1.9"):
        assert {d.observed.split(":")[0] for d in full if d.worded} == {"AttributeError"}
        assert {d.ledger for d in full if d.worded} == {d.ledger for d in full}
    else:
        assert not full
    for topology, case in cases(record, "no-grad-evaluation", LEGACY):
        if any(d.clause == "NG-01" for d in case.deviations):
            assert "enable_grad" in str(topology.module)


def test_a_tensor_without_grad_beside_one_with_it_has_zeros(record: Record) -> None:
    mixed = [
        (topology, case)
        for topology, case in cases(record, "no-grad-input", FULL)
        if {True, False} == {i.requires_grad for i in topology.inputs if not i.name.startswith("v_")}
    ]
    assert mixed
    for topology, case in mixed:
        firing = Expected(topology, values(topology)).firings[0]
        assert sorted(map(state, firing.grad_input)) == ["value", "zero"] or not case.deviations
        judged = {d.clause: d.gap for d in case.deviations}
        if release(record) >= Version("1.9"):
            assert case.judged["GI-02"]
            assert "GI-02" not in judged


def test_about_a_quarter_as_many_topologies_are_explored_as_the_corpus_holds(record: Record) -> None:
    assert record.footer.explored >= sum(len(corpus(family)) for family in FAMILIES) * 23 / 100
