"""Topologies made by hand, one for each thing that a topology can hold, and strategies for arbitrary data."""

from __future__ import annotations

import json
from dataclasses import replace

import torch
from hypothesis import strategies as st

from hookcheck.probe.run import unavailable
from hookcheck.topology.codec import canonical, decode
from hookcheck.topology.layers.activation import ReLU, Sigmoid, Tanh
from hookcheck.topology.layers.convolution import Conv2d
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.layers.structure import Flatten
from hookcheck.topology.model import (
    Apply,
    Backward,
    Call,
    Composite,
    Input,
    Leak,
    Literal,
    Module,
    ModuleList,
    Pack,
    Ref,
    Sequential,
    Statement,
    Topology,
    Tree,
    Within,
)
from hookcheck.topology.ops import Add, Mean, Mul, Sum

X, Y, V = Ref("x"), Ref("y"), Ref("v")
CALLED = Call("y", "", (X,))

SMALL = Topology(
    Composite((("fc", Linear(2, 1)),), ("x",), (Call("h", "fc", (X,)),), Ref("h")),
    (Input("x", (2,), requires_grad=True), Input("v", (1,))),
    (CALLED, Backward((Y,), (V,))),
)


def plain(module: Module, shape: tuple[int, ...] = (2, 3), output: tuple[int, ...] = (2, 3)) -> Topology:
    """``module`` called once on an ``x`` that requires grad, and a backward from its output."""
    return replace(SMALL, module=module, inputs=(Input("x", shape, requires_grad=True), Input("v", output)))


def twin(ties: tuple[tuple[str, str], ...]) -> Topology:
    """``b(a(x))`` with two Linears of one size."""
    body = (Call("h", "a", (X,)), Call("z", "b", (Ref("h"),)))
    return replace(plain(Composite((("a", Linear(3, 3)), ("b", Linear(3, 3))), ("x",), body, Ref("z"))), ties=ties)


HAND_MADE = {
    "small": SMALL,
    "convolution": plain(
        Sequential((Conv2d(2, 2, (2, 1), padding=(1, 0), groups=2), ReLU(), Flatten())), (1, 2, 2, 2), (1, 12)
    ),
    "keyword arguments": replace(
        plain(
            Composite(
                (("fc", Linear(3, 3)),),
                ("x", "factor", "bias"),
                (
                    Call("h", "fc", (), (("input", X),)),
                    Apply("p", Mul(), (Ref("h"), Ref("factor"))),
                    Apply("s", Add(), (Ref("p"), Ref("bias"))),
                ),
                Ref("s"),
                keywords=("factor", "bias"),
            )
        ),
        inputs=(Input("x", (2, 3)), Input("w", (2, 3), requires_grad=True), Input("b", (2, 3)), Input("v", (2, 3))),
        main=(Call("y", "", (X,), (("factor", Ref("w")), ("bias", Ref("b")))), Backward((Y,), (V,))),
    ),
    "literals and containers": replace(
        SMALL,
        module=Composite(
            (("fc", Linear(2, 1)),),
            ("x", "many", "flag"),
            (Call("h", "fc", (Ref("many", (1, "a")),)), Call("k", "fc", (X,))),
            Pack("tuple", (Ref("h"), Literal(None), Pack("list", (Ref("k"), Literal("text"))), Ref("flag"))),
        ),
        main=(
            Call("y", "", (X, Pack("tuple", (Literal(1), Pack("dict", (X,), ("a",)))), Literal(True))),
            Backward((Ref("y", (0,)), Ref("y", (2, 0))), (V, V)),
        ),
    ),
    "dict output": replace(
        SMALL,
        module=Composite(
            (("fc", Linear(2, 1)),), ("x",), (Call("h", "fc", (X,)),), Pack("dict", (Ref("h"), X), ("out", "in"))
        ),
        main=(CALLED, Backward((Ref("y", ("out",)),), (V,))),
    ),
    "shared module": twin((("b", "a"),)),
    "shared parameter": twin((("b.weight", "a.weight"),)),
    "module list": plain(
        Composite(
            (("blocks", ModuleList((Linear(3, 3), Tanh()))),),
            ("x",),
            (Call("h", "blocks.0", (X,)), Call("z", "blocks.1", (Ref("h"),))),
            Ref("z"),
        )
    ),
    "nested sequential": plain(Sequential((Sequential((Linear(3, 3), Sigmoid())), Sequential((Linear(3, 3),))))),
    "frozen": replace(plain(Sequential((Linear(3, 3), Linear(3, 3)))), frozen=("0.weight", "1.bias")),
    "float32 in eval mode": replace(plain(Linear(3, 3)), training=False, dtype="float32", seed=7),
    "leak": replace(
        plain(
            Composite(
                (("a", Linear(3, 3)), ("b", Linear(3, 3))),
                ("x",),
                (Call("h", "a", (X,)), Leak("h", Ref("h")), Call("z", "b", (Ref("h"),))),
                Ref("z"),
            )
        ),
        main=(CALLED, Backward((Ref("leaked", ("h",)), Y), (V, V))),
    ),
    "grad modes": replace(
        plain(
            Composite(
                (("a", Linear(3, 3)), ("b", Linear(3, 3))),
                ("x",),
                (Call("h", "a", (X,)), Within("enable_grad", (Call("z", "b", (Ref("h"),)),))),
                Ref("z"),
            )
        ),
        main=(Within("no_grad", (CALLED, Within("enable_grad", (Call("z", "", (X,)),)))), Backward((Y,), (V,))),
    ),
    "several forwards and backwards": replace(
        plain(Linear(3, 3)),
        main=(
            CALLED,
            Call("z", "", (Y,)),
            Backward((Y,), (V,), retain_graph=True),
            Apply("p", Mul(), (Ref("z"), V)),
            Apply("l", Sum(), (Ref("p"),)),
            Apply("m", Mean(), (Ref("z"),)),
            Backward((Ref("l"),), retain_graph=True),
            Backward((Ref("l"), Ref("m"))),
        ),
    ),
    "gradient of the input alone": replace(
        plain(Linear(3, 3)), main=(CALLED, Backward((Y,), (V,), inputs=(X,), retain_graph=True), Backward((Y,), (V,)))
    ),
}


def runnable(topology: Topology) -> Topology:
    """``topology``, with ``inference_mode`` replaced by ``no_grad`` on a torch that lacks it (older than 1.9)."""
    if not unavailable(topology, None):
        return topology
    assert not hasattr(torch, "inference_mode")
    older = decode(json.loads(canonical(topology).replace('"inference_mode"', '"no_grad"')))
    assert not unavailable(older, None)
    return older


NAMES = st.sampled_from(["x", "y", "h0", "leaked"])
REFS = st.builds(Ref, NAMES, st.lists(st.one_of(st.integers(-3, 9), st.text(max_size=3)), max_size=2).map(tuple))
LITERALS = st.builds(
    Literal,
    st.one_of(
        st.none(), st.booleans(), st.integers(-2, 2), st.floats(allow_nan=False, allow_infinity=False), st.text()
    ),
)


def _packs(trees: st.SearchStrategy[Tree]) -> st.SearchStrategy[Pack]:
    items = st.lists(trees, max_size=3).map(tuple)
    dicts = st.lists(st.tuples(st.text(max_size=2), trees), max_size=3).map(
        lambda pairs: Pack("dict", tuple(tree for _, tree in pairs), tuple(key for key, _ in pairs))
    )
    return st.one_of(st.builds(Pack, st.sampled_from(["tuple", "list"]), items), dicts)


TREES: st.SearchStrategy[Tree] = st.recursive(st.one_of(REFS, LITERALS), _packs, max_leaves=4)
FEW_TREES, FEW_REFS = st.lists(TREES, max_size=2).map(tuple), st.lists(REFS, max_size=2).map(tuple)
STATEMENTS: st.SearchStrategy[Statement] = st.recursive(
    st.one_of(
        st.builds(Call, NAMES, NAMES, FEW_TREES, st.lists(st.tuples(NAMES, TREES), max_size=2).map(tuple)),
        st.builds(Apply, NAMES, st.sampled_from([Add(), Mul(), Sum(), Mean()]), FEW_REFS),
        st.builds(Leak, NAMES, REFS),
        st.builds(Backward, FEW_REFS, FEW_REFS, FEW_REFS, st.booleans()),
    ),
    lambda inner: st.builds(
        Within,
        st.sampled_from(["no_grad", "enable_grad", "inference_mode"]),
        st.lists(inner, max_size=2).map(tuple),
    ),
    max_leaves=3,
)
BODIES = st.lists(STATEMENTS, max_size=3).map(tuple)
PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))
MODULES: st.SearchStrategy[Module] = st.recursive(
    st.one_of(
        st.builds(Linear, st.integers(1, 3), st.integers(1, 3), st.booleans()),
        st.builds(
            Conv2d, st.integers(1, 3), st.integers(1, 3), PAIRS, PAIRS, PAIRS, PAIRS, st.integers(1, 2), st.booleans()
        ),
        st.sampled_from([Sigmoid(), Tanh(), ReLU(), Flatten()]),
    ),
    lambda inner: st.one_of(
        st.builds(Sequential, st.lists(inner, max_size=2).map(tuple)),
        st.builds(ModuleList, st.lists(inner, max_size=2).map(tuple)),
        st.builds(
            Composite,
            st.lists(st.tuples(NAMES, inner), max_size=2).map(tuple),
            st.lists(NAMES, max_size=2).map(tuple),
            BODIES,
            TREES,
            st.lists(NAMES, max_size=2).map(tuple),
        ),
    ),
    max_leaves=3,
)
TOPOLOGIES = st.builds(
    Topology,
    MODULES,
    st.lists(
        st.builds(Input, NAMES, st.lists(st.integers(0, 4), max_size=3).map(tuple), st.booleans()), max_size=2
    ).map(tuple),
    BODIES,
    st.booleans(),
    st.sampled_from(["float64", "float32"]),
    st.sampled_from(["any", "cpu", "cuda"]),
    st.integers(0, 2**32 - 1),
    st.lists(NAMES, max_size=2).map(tuple),
    st.lists(st.tuples(NAMES, NAMES), max_size=2).map(tuple),
)
"""Any data that the model can hold, whether or not it could run."""
