"""Is every word of every axis what it says, are pairs counted, and does each reason hold of the corpus?"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from topology.samples import CALLED, SAMPLES, V, X, Y, plain, twin

from hookcheck.coverage.axes import Word, Words, axes, words
from hookcheck.coverage.members import Member, members
from hookcheck.coverage.pairs import TRIPLES, WordPair, covered, meeting, triples, untrue
from hookcheck.coverage.rules import APART, NOT_DRAWN, POSSIBLE, RULES, ExclusionRule
from hookcheck.coverage.sentences import by_reason, by_threes, counts, missing, summary
from hookcheck.hooks.kinds import KINDS
from hookcheck.oracle.dtypes import FLOATING
from hookcheck.oracle.expected import Expected
from hookcheck.suite import conformance_folder
from hookcheck.topology.catalogue import layer_classes
from hookcheck.topology.contexts import ASKING, CALLER, CONTEXTS, GRAD_MODES
from hookcheck.topology.families import FAMILIES
from hookcheck.topology.families.compiled import by_either_backend
from hookcheck.topology.layers.activation import Hardsigmoid, ReLU, Tanh
from hookcheck.topology.layers.embedding import Embedding
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import (
    Apply,
    Backward,
    Call,
    Composite,
    Grad,
    Input,
    Module,
    ModuleList,
    Recurse,
    Sequential,
    Statement,
    Topology,
    Within,
)
from hookcheck.topology.ops import Add
from hookcheck.topology.ops.elementwise import Neg
from hookcheck.topology.ops.inplace import MulInplace
from hookcheck.topology.ops.moving import To
from hookcheck.topology.ops.tensors import AsTensor
from hookcheck.topology.primitive import Op
from hookcheck.topology.tensors import TENSORS
from hookcheck.topology.tree import Literal, Pack, Ref, Tree
from hookcheck.topology.values import values

FC, H, Z = Linear(3, 3), Ref("h"), Ref("z")
LINEAR = plain(FC)


def body(*statements: Statement, gives: Tree = H, takes: tuple[str, ...] = ("x",), **children: Module) -> Topology:
    return plain(Composite(tuple(children.items()), takes, statements, gives))


def of(topology: Topology, *args: Tree, output: Ref = Y, grads: str = "xab", **kwargs: Tree) -> Topology:
    """The root called with these arguments, and a backward from ``output``."""
    inputs = tuple(Input(name, (2, 3), name in grads) for name in "xabv")
    return replace(
        topology, inputs=inputs, main=(Call("y", "", args, tuple(kwargs.items())), Backward((output,), (V,)))
    )


ADDED = body(Apply("h", Add(), (X, Ref("a"))), takes=("x", "a"))
ALL = {"grad_input all tensors", "grad_output all tensors"}
BOTH = body(Call("h", "fc", (X,)), Call("z", "fc", (X,)), gives=Pack("tuple", (H, Z)), fc=FC)
WRITE = Apply("z", MulInplace(), (H, H))
CONVERTED = body(Apply("h", To("float32"), (X,)), Call("z", "act", (H,)), gives=Z, act=Tanh())
LOOKED_UP = replace(
    plain(Embedding(4, 3, sparse=True)), inputs=(Input("x", (2,), domain="index", below=4), Input("v", (2, 3)))
)
DEEP = Sequential((Sequential((Tanh(),)),))


def uses(topology: Topology, family: str = "multi-node") -> frozenset[Words]:
    return words(family, Expected(topology, values(topology)))


def called(op: Op, *more: Statement, gives: Tree = H) -> Topology:
    return body(Apply("h", op, (X,)), *more, gives=gives, fc=FC)


def within(name: str) -> Topology:
    """A Linear in the context of that name."""
    if CONTEXTS[name].wraps == ASKING:
        return replace(LINEAR, main=(CALLED, Grad("g", (Y,), (X,), (V,), context=name)))
    if CONTEXTS[name].wraps == CALLER:
        return replace(LINEAR, main=(replace(CALLED, context=name), *LINEAR.main[1:]))
    return replace(LINEAR, main=(Within(name, LINEAR.main),))


BY_HAND: list[tuple[str, Topology, set[str]]] = [
    ("layer group", LINEAR, {"linear"}),
    ("layer group", plain(Sequential((FC, ReLU(), Tanh()))), {"container", "linear", "activation"}),
    ("layer group", called(Neg()), {"container"}),  # a child that is never called is no part of it
    ("grad mode", LINEAR, {"grad"}),
    ("grad mode", replace(LINEAR, main=(Within("no_grad", (CALLED,)),)), {"no_grad"}),
    ("grad mode", replace(LINEAR, main=(Within("inference_mode", (CALLED,)),)), {"inference_mode"}),
    ("grad mode", SAMPLES["grad modes"], {"grad", "no_grad"}),
    ("arity", LINEAR, {"1 in", "1 out"}),
    ("arity", of(LINEAR, input=X), {"0 in", "1 out"}),
    ("arity", of(ADDED, X, Ref("a")), {"2 in", "1 out"}),
    ("arity", of(body(Apply("h", Neg(), (X,)), takes=("x", "a", "b")), X, Literal(1), X), {"3+ in", "1 out"}),
    ("arity", of(BOTH, X, output=Ref("y", (1,))), {"1 in", "1 out", "2+ out"}),
    ("None pattern", LINEAR, ALL),
    ("None pattern", of(LINEAR, X, grads=""), {"grad_input all None", "grad_output all tensors"}),
    ("None pattern", of(LINEAR, input=X), {"grad_input empty", "grad_output all tensors"}),
    (
        "None pattern",
        of(body(Apply("h", Neg(), (X,)), takes=("x", "a")), X, Literal(1)),
        {"grad_input some None", "grad_output all tensors"},
    ),
    (
        "None pattern",
        of(body(Apply("h", Neg(), (X,)), gives=Pack("tuple", (H, Literal(None)))), X, output=Ref("y", (0,))),
        {"grad_input all tensors", "grad_output some None"},
    ),
    (
        "None pattern",
        replace(SAMPLES["leak"], main=(CALLED, Backward((Ref("leaked", ("h",)),), (V,)))),
        ALL | {"grad_output all None", "no firing"},  # no gradient reaches what follows the leak
    ),
    ("None pattern", replace(LINEAR, main=(CALLED,)), {"no firing"}),
    ("in-place", LINEAR, {"none"}),
    ("in-place", called(Neg(), WRITE, gives=Z), {"allowed"}),
    ("in-place", body(Call("h", "fc", (X,)), WRITE, gives=Z, fc=FC), {"forbidden"}),
    ("in-place", plain(Sequential((Tanh(), FC, ReLU(inplace=True)))), {"none", "forbidden"}),  # Tanh is not written to
    ("reuse", LINEAR, {"once"}),
    ("reuse", body(Call("z", "fc", (X,)), Call("h", "fc", (Z,)), fc=FC), {"once", "module called again"}),
    ("reuse", twin((("b", "a"),)), {"once", "module called again", "shared module"}),
    ("reuse", twin((("b.weight", "a.weight"),)), {"once", "shared parameter"}),
    (
        "reuse",
        of(body(Apply("z", Neg(), (X,)), Recurse("h", Z, "n"), takes=("x", "n")), X, Literal(1)),
        {"module called again", "recursive"},
    ),
    *(("dtype", replace(LINEAR, dtype=dtype), {dtype}) for dtype in FLOATING),
    ("dtype", CONVERTED, {"float64", "float32", "mixed"}),
    ("dtype", plain(Hardsigmoid()), {"float64"}),  # a constant of its formula is float32, but no tensor
    ("depth", LINEAR, {"1"}),
    ("depth", plain(Sequential((FC,))), {"1", "2"}),
    ("depth", plain(DEEP), {"1", "2", "3"}),
    ("depth", body(Call("h", "m.0", (X,)), m=ModuleList((DEEP,))), {"1", "3", "4+"}),  # the list is never called
    ("context", LINEAR, {"none"}),
    ("context", replace(LINEAR, main=(Within("no_grad", (CALLED,)),)), {"none"}),
    (
        "context",
        replace(LINEAR, main=(Within("one_thread", (Within("autocast", (CALLED,)),)),)),
        {"one_thread", "autocast"},
    ),
    *(("context", within(name), {name}) for name in CONTEXTS if name not in GRAD_MODES),
    ("tensor", LINEAR, {"plain"}),
    ("tensor", called(AsTensor("large strides")), {"large strides"}),
    ("tensor", replace(LINEAR, classes=(("weight", "wrapper"),)), {"wrapper"}),
    ("tensor", LOOKED_UP, {"sparse gradient"}),
    ("tensor", replace(LOOKED_UP, module=Embedding(4, 3)), {"plain"}),
    *(
        ("tensor", replace(LINEAR, inputs=(Input("x", (2, 3), True, tensor=name), *LINEAR.inputs[1:])), {name})
        for name in TENSORS
    ),
]


@pytest.mark.parametrize(
    ("axis", "topology", "expected"), BY_HAND, ids=lambda value: value if type(value) is str else ""
)
def test_the_words_of_networks_made_by_hand(axis: str, topology: Topology, expected: set[str]) -> None:
    assert set().union(*(dict(use)[axis] for use in uses(topology))) == expected


def test_every_word_is_made_by_hand() -> None:
    for axis in axes():
        by_hand = {word for name, _, expected in BY_HAND if name == axis.name for word in expected}
        if axis.name == "None pattern":
            assert by_hand == {*axis.words} - {"grad_output empty"}  # see the rule that says why
        elif axis.name not in ("hook kind", "family", "layer group"):
            assert by_hand == {*axis.words}


def test_the_words_that_are_listed_elsewhere() -> None:
    by_axis = {axis.name: axis.words for axis in axes()}
    assert by_axis["hook kind"] == tuple(KINDS)
    assert by_axis["family"] == tuple(FAMILIES)
    assert {kind.__module__.split(".")[-1] for kind in layer_classes().values()} | {"container"} == {
        *by_axis["layer group"]
    }
    (use,) = uses(LINEAR)
    assert (dict(use)["hook kind"], dict(use)["family"]) == (frozenset(KINDS), {"multi-node"})


def use(**choices: str) -> Words:
    return tuple((axis, frozenset(choices)) for axis, choices in choices.items())


def test_words_meet_at_one_use() -> None:
    assert meeting([use(a="12", b="3", c="4")]) == {
        (("a", "1"), ("b", "3")), (("a", "2"), ("b", "3")), (("a", "1"), ("c", "4")), (("a", "2"), ("c", "4")),
        (("b", "3"), ("c", "4")),
    }  # fmt: skip
    assert meeting([use(a="1", b="3"), use(a="2", b="4")]) == {(("a", "1"), ("b", "3")), (("a", "2"), ("b", "4"))}


def test_a_layer_meets_what_is_said_of_its_own_call() -> None:
    inside = Within("no_grad", (Call("z", "act", (H,)),))
    pairs = meeting(uses(body(Call("h", "fc", (X,)), inside, fc=FC, act=Tanh())))
    linear, activation, container = (("layer group", group) for group in ("linear", "activation", "container"))
    assert (linear, ("grad mode", "grad")) in pairs
    assert (activation, ("grad mode", "no_grad")) in pairs
    assert (linear, ("grad mode", "no_grad")) not in pairs
    assert (activation, ("None pattern", "no firing")) in pairs
    assert (linear, ("None pattern", "no firing")) not in pairs
    assert (activation, ("depth", "1")) not in pairs
    assert all((("family", "multi-node"), group) in pairs for group in (linear, activation, container))


TINY = [
    Member("multi-node", LINEAR),
    Member("multi-node", replace(LINEAR, dtype="float32")),
    Member("single-node", plain(DEEP)),
]


def pair(pairs: tuple[WordPair, ...], *words: str) -> tuple[int, str]:
    (match,) = (p for p in pairs if words == (p.axis_a, p.word_a, p.axis_b, p.word_b))
    return match.topologies, match.reason


def test_pairs_of_a_tiny_corpus() -> None:
    rules = (
        ExclusionRule("never by hand", ("reuse=shared *", "!reuse=shared parameter"), ("depth=*", "!depth=2")),
        ExclusionRule("second", ("reuse=shared *",), ("depth=1",)),
    )
    pairs = covered(TINY, rules)
    assert pair(pairs, "family", "multi-node", "layer group", "linear") == (2, "")
    assert pair(pairs, "family", "single-node", "layer group", "linear") == (0, NOT_DRAWN)
    assert pair(pairs, "hook kind", "backward", "dtype", "float64") == (2, "")
    assert pair(pairs, "dtype", "float32", "depth", "1") == (1, "")
    assert pair(pairs, "dtype", "float32", "depth", "3") == (0, NOT_DRAWN)
    assert pair(pairs, "reuse", "shared module", "depth", "1") == (0, "never by hand")
    assert pair(pairs, "reuse", "shared module", "depth", "2") == (0, NOT_DRAWN)
    assert pair(pairs, "reuse", "shared parameter", "depth", "1") == (0, "second")
    sizes = [len(axis.words) for axis in axes()]
    assert len(pairs) == (sum(sizes) ** 2 - sum(n * n for n in sizes)) // 2


def test_words_that_no_family_has_together() -> None:
    rules = (
        ExclusionRule("only in inplace", ("family=*", "!family=inplace"), ("in-place=allowed",)),
        ExclusionRule("only in mixed-dtype", ("family=*", "!family=mixed-dtype"), ("dtype=mixed", "dtype=float32")),
        ExclusionRule("not in inplace", ("family=inplace",), ("depth=4+",)),
    )
    pairs = covered(TINY, rules)
    assert pair(pairs, "in-place", "allowed", "dtype", "mixed") == (0, APART)
    assert pair(pairs, "in-place", "allowed", "depth", "4+") == (0, APART)
    assert pair(pairs, "dtype", "mixed", "depth", "4+") == (0, NOT_DRAWN)
    assert pair(pairs, "family", "inplace", "in-place", "allowed") == (0, NOT_DRAWN)
    assert pair(pairs, "family", "inplace", "dtype", "mixed") == (0, "only in mixed-dtype")
    assert pair(pairs, "in-place", "none", "dtype", "float32") == (1, "")


def test_triples_of_a_tiny_corpus() -> None:
    rules = (
        ExclusionRule("never by hand", ("context=vmap",), ("None pattern=no firing",)),
        ExclusionRule("only in context", ("family=*", "!family=context"), ("context=*", "!context=none")),
        ExclusionRule("only in tensor-class", ("family=*", "!family=tensor-class"), ("tensor=*", "!tensor=plain")),
    )
    met = {triple.words: triple for triple in triples([*TINY, Member("context", within("vmap"))], rules)}
    sizes = {axis.name: len(axis.words) for axis in axes()}
    assert len(met) == sum(sizes[a] * sizes[b] * sizes[c] for a, b, c in TRIPLES)

    def row(axes: tuple[str, ...], *words: str) -> tuple[int, str]:
        triple = met[tuple(zip(axes, words))]
        assert triple.row["choices"] == [f"{axis}: {word}" for axis, word in zip(axes, words)]
        return triple.topologies, triple.reason

    assert row(TRIPLES[0], "full_backward", "none", "plain") == (3, "")
    assert row(TRIPLES[0], "full_backward", "vmap", "plain") == (1, "")
    assert row(TRIPLES[0], "full_backward", "vmap", "nested") == (0, APART)
    assert row(TRIPLES[0], "full_backward", "none", "nested") == (0, NOT_DRAWN)
    assert row(TRIPLES[1], "linear", "vmap", "grad_input all tensors") == (1, "")
    assert row(TRIPLES[1], "linear", "vmap", "no firing") == (0, "never by hand")
    assert row(TRIPLES[1], "activation", "vmap", "grad_input all tensors") == (0, NOT_DRAWN)
    assert {row["reason"] for row in by_reason(met.values())} == {*POSSIBLE, "never by hand"}
    rows = {row["axes"]: row for row in by_threes(met.values())}
    kinds, contexts, classes = (sizes[axis] for axis in TRIPLES[0])
    assert rows["hook kind × context × tensor"] == {
        "axes": "hook kind × context × tensor",
        "reached": f"{2 * kinds:,}",
        "ruled out": "0",
        "possible": f"{kinds * (contexts * classes - 2):,}",
    }


def test_what_people_are_told_of_a_tiny_corpus() -> None:
    rules = (ExclusionRule("never by hand", ("reuse=shared *",), ("depth=1",)),)
    pairs = covered(TINY, rules)
    rows = {row["pairs"]: row for row in counts(pairs)}
    assert rows["family"]["hook kind"] == f"{2 * len(KINDS)}/{len(FAMILIES) * len(KINDS)}"
    assert rows["depth"]["dtype"] == f"4/{4 * (len(FLOATING) + 1)}"
    assert rows["family"]["layer group"] == ""
    lines = missing(pairs)
    assert lines[1:3] == ["never by hand (2 pairs):", "  reuse shared module, shared parameter with depth 1"]
    assert "  hook kind (any) with grad mode no_grad, inference_mode" in lines
    reached = sum(p.topologies > 0 for p in pairs)
    assert summary(pairs, 3) == (
        f"{reached:,} of {len(pairs):,} pairs reached by 3 topologies; "
        f"2 ruled out, {len(pairs) - reached - 2:,} possible"
    )


def test_reasons_that_do_not_hold_are_found() -> None:
    holds = ExclusionRule("holds", ("dtype=mixed",))
    contradicted = ExclusionRule("contradicted", ("family=multi-node",), ("dtype=float32", "dtype=bfloat16"))
    nothing = ExclusionRule("matches nothing", ("dtype=float128",))
    shadowed = ExclusionRule("shadowed", ("dtype=mixed",), ("depth=1",))
    rules = (holds, contradicted, nothing, shadowed)
    assert untrue(covered(TINY, rules), rules) == ["contradicted", "matches nothing", "shadowed"]


@pytest.fixture(scope="module")
def of_the_corpus() -> tuple[WordPair, ...]:
    corpus = conformance_folder() / "corpus"
    return covered(member for family in FAMILIES for member in members(corpus, family))


@pytest.mark.slow
def test_the_reasons_hold_of_the_corpus(of_the_corpus: tuple[WordPair, ...]) -> None:
    assert untrue(of_the_corpus) == []
    assert len({rule.why for rule in RULES} | {*POSSIBLE}) == len(RULES) + len(POSSIBLE)


@pytest.mark.slow
@pytest.mark.parametrize("axes", [("context", "tensor"), ("hook kind", "context"), ("hook kind", "tensor")])
def test_each_context_meets_each_tensor_and_each_kind_or_cannot(
    of_the_corpus: tuple[WordPair, ...], axes: tuple[str, str]
) -> None:
    """A class meets each way to compile by one backend or the other, since compiling is slow."""
    pairs = [pair for pair in of_the_corpus if (pair.axis_a, pair.axis_b) == axes]
    reached = {(by_either_backend(pair.word_a), pair.word_b) for pair in pairs if pair.topologies}
    assert reached
    left = [pair for pair in pairs if pair.reason in POSSIBLE]
    assert [pair for pair in left if (by_either_backend(pair.word_a), pair.word_b) not in reached] == []


@pytest.fixture(scope="module")
def reasons() -> dict[tuple[Word, Word], str]:
    """What would be said of each pair if nothing were reached."""
    return {((p.axis_a, p.word_a), (p.axis_b, p.word_b)): p.reason for p in covered(())}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_no_reason_excuses_what_a_family_draws(family: str, reasons: dict[tuple[Word, Word], str]) -> None:
    @settings(max_examples=25, database=None, phases=[Phase.generate])
    @given(FAMILIES[family].topologies())
    def excuses_nothing(topology: Topology) -> None:
        assert {pair: reasons[pair] for pair in meeting(uses(topology, family)) if reasons[pair] != NOT_DRAWN} == {}

    excuses_nothing()
