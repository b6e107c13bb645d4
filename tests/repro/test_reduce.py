"""Does a reduced case show the same fault, and is it as small as a person would make it?"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial

import pytest
import torch

from hookcheck.contract.ledger import Ledger, applying, load
from hookcheck.hooks.kinds import KINDS, HookKind
from hookcheck.repro import reduce
from hookcheck.repro.choice import chosen
from hookcheck.repro.reduce import one_step_away, reduced, weight
from hookcheck.repro.sighting import Symptom, sightings, unable
from hookcheck.suite import conformance_folder
from hookcheck.topology.codec import decode, encode, identify
from hookcheck.topology.corpus import read
from hookcheck.topology.layers.activation import Sigmoid
from hookcheck.topology.layers.attention import MultiheadAttention
from hookcheck.topology.layers.batch_norm import BatchNorm1d
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.layers.loss_elementwise import L1Loss
from hookcheck.topology.layers.transformer_layer import TransformerEncoderLayer
from hookcheck.topology.model import (
    Apply,
    Backward,
    Call,
    Composite,
    Grad,
    Input,
    Sequential,
    Topology,
    statements,
    walk,
)
from hookcheck.topology.ops.elementwise import Pow
from hookcheck.topology.ops.reduction import Sum
from hookcheck.topology.tree import Pack, Ref
from hookcheck.topology.values import values

from .broken import broken
from .cases import MIXED, ON_NETWORKS


@lru_cache(maxsize=1)
def ledger() -> Ledger:
    return applying(load(), torch.__version__, "cpu")


def symptoms(topology: Topology, kind: HookKind, clause: str, known: Ledger, family: str = "nested") -> list[Symptom]:
    if unable(topology, kind) or kind.name not in ON_NETWORKS[clause].kinds:
        return []
    return [sighting.symptom for sighting in sightings(topology, family, kind, ON_NETWORKS[clause], known)]


def smallest(topology: Topology, kind: str, clause: str, known: Ledger | None = None) -> tuple[Topology, HookKind]:
    """The reduced case of the first deviation, which must show the same."""
    known = known or ledger()
    wanted = symptoms(topology, KINDS[kind], clause, known)[0]
    reduction = reduced(topology, KINDS[kind], lambda case, hook: wanted in symptoms(case, hook, clause, known))
    assert wanted in symptoms(*reduction, clause, known)
    return reduction


LEAK = Topology(
    Sequential((Linear(3, 4), Sigmoid(), Linear(4, 2), Sigmoid())),
    (Input("x", (2, 3), requires_grad=True),),
    (
        Call("y", "", (Ref("x"),)),
        Apply("p", Pow(2), (Ref("y"),)),
        Apply("loss", Sum(), (Ref("p"),)),
        Grad("g", (Ref("loss"),), (Ref("net.0.weight"),), create_graph=True),
    ),
)

PLAIN = replace(LEAK, main=(*LEAK.main[:3], Backward((Ref("loss"),))))


@pytest.mark.skipif(torch.__version__ < "2", reason="what is kept alive differs there")
def test_a_leak_needs_one_layer_and_one_call() -> None:
    topology, kind = smallest(LEAK, "full_backward", "OB-08")
    assert kind.name == "full_backward"
    assert len(list(walk(topology.module))) == 1
    assert len(list(statements(topology))) <= 4
    assert (topology.dtype, topology.counting) == ("float32", True)
    assert all(size == 1 for i in topology.inputs for size in i.shape)


def test_a_global_kind_becomes_a_local_one() -> None:
    topology, kind = smallest(PLAIN, "global_backward", "GI-01")
    assert kind.name == "backward"
    assert len(list(walk(topology.module))) == 1


def test_the_same_steps_lead_to_the_same_end() -> None:
    assert smallest(PLAIN, "backward", "GI-01") == smallest(PLAIN, "backward", "GI-01")


def test_a_layer_goes_without_factors_that_nothing_needs() -> None:
    topology = Topology(
        BatchNorm1d(2, eps=0.5),
        (Input("x", (3, 2), requires_grad=True),),
        (Call("y", "", (Ref("x"),)), Apply("loss", Sum(), (Ref("y"),)), Backward((Ref("loss"),))),
    )

    def still(case: Topology, hook: HookKind) -> bool:
        return isinstance(case.module, BatchNorm1d) and case.module.eps == 0.5 and case.inputs[0].requires_grad

    assert reduced(topology, KINDS["full_backward"], still)[0].module == BatchNorm1d(1, eps=0.5, affine=False)


MASKED = Topology(
    MultiheadAttention(2, 1, sources=1, key_padding_mask="bool"),
    (Input("x", (2, 1, 2), requires_grad=True), Input("mask", (1, 2), domain="mask"), Input("v", (2, 1, 2))),
    (
        Call("y", "", (Ref("x"),) * 3, (("key_padding_mask", Ref("mask")),)),
        Backward((Ref("y", (0,)),), (Ref("v"),)),
    ),
)
"""A layer that takes a mask of flags by keyword."""


def test_a_layer_goes_without_a_mask_that_nothing_needs() -> None:
    def still(case: Topology, hook: HookKind) -> bool:
        return isinstance(case.module, MultiheadAttention) and case.inputs[0].requires_grad

    smaller = reduced(MASKED, KINDS["full_backward"], still)[0]
    assert isinstance(smaller.module, MultiheadAttention)
    assert smaller.module.key_padding_mask == ""
    assert [i.name for i in smaller.inputs if i.domain == "mask"] == []


def test_a_mask_of_flags_stays_one() -> None:
    domains = {i.domain for net in one_step_away(MASKED) for i in net.inputs if i.name == "mask"}
    assert domains == {"mask"}


def test_what_is_small_stays_as_it_is() -> None:
    topology, _ = smallest(PLAIN, "backward", "GI-01")
    assert smallest(topology, "backward", "GI-01")[0] == topology


@pytest.mark.parametrize("how", ["wrong grad_output", "calls twice"])
def test_a_fault_of_torch_that_nobody_knows(how: str) -> None:
    clause = {"wrong grad_output": "GO-01", "calls twice": "BW-05"}[how]
    with broken("register_full_backward_hook", how):
        topology, _ = smallest(MIXED, "full_backward", clause, Ledger(()))
    assert weight(topology) < weight(MIXED)
    assert len(list(walk(topology.module))) == 1


def test_an_argument_that_it_is_about_still_requires_grad() -> None:
    if "full_backward" not in KINDS or torch.__version__ < "1.9":
        pytest.skip("losses have no such hook there")
    inputs = (Input("x0", (2,), requires_grad=True), Input("x1", (2,), requires_grad=True))
    both = Topology(L1Loss(), inputs, (Call("y", "", (Ref("x0"), Ref("x1"))), Backward((Ref("y"),))))
    with broken("register_full_backward_hook", "no grad_input"):
        topology, _ = smallest(both, "full_backward", "GI-02", Ledger(()))
    assert [given.requires_grad for given in topology.inputs] == [True, False]


def test_the_steps_come_in_one_order() -> None:
    module = {"type": "Conv2d", **dict.fromkeys(("stride", "padding", "dilation", "groups", "bias", "padding_mode"), 1)}
    fewer = list(reduce._without_a_field(module))
    left_out = [name for each in fewer for name in module.keys() - each.keys()]
    assert len(left_out) > 3
    assert left_out == sorted(left_out)  # a set of texts has another order in each process


def test_a_case_of_the_corpus() -> None:
    family = "residual"
    known = ledger()
    cases = read(conformance_folder() / "corpus", family)
    of = partial(symptoms, kind=KINDS["backward"], clause="OR-01", known=known, family=family)
    case = next(case for case in cases if of(case))
    topology, _ = smallest(case, "backward", "OR-01")
    assert len(list(walk(topology.module))) <= 3  # it takes two hooks to be in the wrong order


@pytest.mark.skipif(torch.__version__ < "2", reason="what is kept alive differs there")
def test_a_leak_of_the_corpus_is_one_line() -> None:
    """Nothing else than the hook keeps anything alive in it: torch warns of what a backward with a graph leaves."""
    cases = read(conformance_folder() / "corpus", "double-backward")
    of = partial(symptoms, kind=KINDS["full_backward"], clause="OB-08", known=ledger(), family="double-backward")
    case = next(case for case in cases if any(not symptom.unhooked for symptom in of(case)))
    wanted = of(case)[0]
    topology, kind = reduced(case, KINDS["full_backward"], lambda case, hook: wanted in of(case, kind=hook))
    (sighting,) = sightings(topology, "double-backward", kind, ON_NETWORKS["OB-08"], ledger())
    lines = [line.strip() for line in chosen(sighting).text.split("\n")]
    assert "torch.autograd.grad(net(x) ** 2, net.weight, create_graph=True)" in lines
    assert "net = nn.Linear(1, 1, bias=False)" in lines
    body = lines[lines.index("def run(hooked):") : lines.index("return weakref.ref(net)")]
    assert len(body) <= 6


def test_what_is_called_through_a_context_stays_so_if_need_be() -> None:
    hosted = replace(PLAIN, main=(replace(PLAIN.main[0], context="vmap"), *PLAIN.main[1:]))
    if unable(hosted, KINDS["output_node"]):
        pytest.skip(unable(hosted, KINDS["output_node"]))
    topology, _ = smallest(hosted, "output_node", "TN-04")
    assert len(list(walk(topology.module))) == 1
    assert [s.context for s in topology.main if isinstance(s, Call)] == ["vmap"]


def test_a_network_that_torch_takes_for_another_one_does_not_show_the_same() -> None:
    """A layer of transformers takes two axes for one sequence, for which its formulas are not."""
    layer = TransformerEncoderLayer(1, 1, 1, dropout=0.0)
    outputs = Pack("tuple", (Ref("h"), Ref("x")))
    net = Composite((("m", layer),), ("x",), (Call("h", "m", (Ref("x"),)),), outputs)
    asks = Grad("g", (Ref("y", (1,)),), (Ref("net.m.self_attn.in_proj_weight"),))
    batched = Topology(net, (Input("x", (1, 1, 1), requires_grad=True),), (Call("y", "", (Ref("x"),)), asks))
    if unable(batched, KINDS["full_backward"]):
        pytest.skip(unable(batched, KINDS["full_backward"]))
    one = replace(batched, inputs=(replace(batched.inputs[0], shape=(1, 1)),))
    shaped = [symptoms(case, KINDS["full_backward"], "AG-02", ledger())[0].shaped for case in (batched, one)]
    assert shaped == [True, False]
    topology, _ = smallest(batched, "full_backward", "AG-02")
    assert [len(i.shape) for i in topology.inputs] == [3]


def test_numbers_that_count() -> None:
    counting = replace(LEAK, counting=True)
    assert values(counting)["0.weight"].reshape(-1).tolist() == [float(n) for n in range(1, 13)]
    assert decode(encode(counting)) == counting
    assert identify(LEAK) != identify(counting)
    assert "counting" not in encode(LEAK)
