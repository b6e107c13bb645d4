"""Topologies made by hand, one for each thing that a topology can hold."""

from __future__ import annotations

import json
from dataclasses import replace

import torch

from hookcheck.probe.run import unavailable
from hookcheck.topology.codec import canonical, decode
from hookcheck.topology.layers.activation import ReLU, Sigmoid, Tanh
from hookcheck.topology.layers.attention import MultiheadAttention
from hookcheck.topology.layers.batch_norm import BatchNorm1d
from hookcheck.topology.layers.convolution import Conv2d
from hookcheck.topology.layers.dropout import AlphaDropout, Dropout2d
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.layers.max_pool import MaxPool1d
from hookcheck.topology.layers.recurrent import LSTM
from hookcheck.topology.layers.structure import Flatten
from hookcheck.topology.model import (
    Apply,
    Backward,
    Call,
    Composite,
    Grad,
    Input,
    Leak,
    Module,
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Recurse,
    Sequential,
    Statement,
    Topology,
    Train,
    Within,
)
from hookcheck.topology.ops import Add, Mean, Mul, Sum
from hookcheck.topology.ops.inplace import AddInplace, MulInplace
from hookcheck.topology.ops.joining import Split
from hookcheck.topology.ops.moving import To
from hookcheck.topology.ops.reduction import MaxOver
from hookcheck.topology.ops.views import Select, View
from hookcheck.topology.tree import Literal, Pack, Ref, Tree
from hookcheck.topology.values import DOMAINS

X, Y, V, Z = Ref("x"), Ref("y"), Ref("v"), Ref("z")
CALLED = Call("y", "", (X,))
FC = Call("h", "fc", (X,))

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


def calling(takes: tuple[str, ...], *body: Statement, gives: Tree = Z) -> Composite:
    """A module with a body, over one Linear ``fc`` from 3 to 3."""
    return Composite((("fc", Linear(3, 3)),), takes, body, gives)


def first_of(module: Module, shape: tuple[int, ...] = (2, 3), output: tuple[int, ...] = (2, 3)) -> Topology:
    """``module``, which gives a tuple, called once, and a backward from the first of its outputs."""
    return replace(plain(module, shape, output), main=(CALLED, Backward((Ref("y", (0,)),), (V,))))


def given_back(*, by: str, reached: Ref) -> Topology:
    """``fc(x)`` and ``x`` in a container with keys, and a backward from what is ``reached`` in it."""
    gives = Pack(by, (Ref("h"), X), ("out", "rest"))
    return replace(plain(calling(("x",), FC, gives=gives)), main=(CALLED, Backward((reached,), (V,))))


SAMPLES = {
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
    "namedtuple output": given_back(by="namedtuple", reached=Ref("y", (".out",))),
    "namedtuple output by index": given_back(by="namedtuple", reached=Ref("y", (0,))),
    "dataclass output": given_back(by="dataclass", reached=Ref("y", (".out",))),
    "dataclass and namedtuple arguments": replace(
        plain(
            calling(
                ("many", "pair"),
                Call("h", "fc", (Ref("many", (".a",)),)),
                Apply("z", Add(), (Ref("h"), Ref("pair", (1, ".c")))),
            )
        ),
        main=(
            Call(
                "y",
                "",
                (
                    Pack("dataclass", (X, Literal("no tensor")), ("a", "b")),
                    Pack("tuple", (Literal(None), Pack("namedtuple", (X, Literal(0.5)), ("c", "d")))),
                ),
            ),
            Backward((Y,), (V,)),
        ),
    ),
    "nested containers": replace(
        plain(
            calling(
                ("x",),
                FC,
                gives=Pack(
                    "dict",
                    (
                        Pack("list", (Pack("namedtuple", (Ref("h"),), ("first",)), Literal(1))),
                        Pack("dataclass", (Pack("tuple", (Ref("h"), X)),), ("inner",)),
                    ),
                    ("listed", "kept"),
                ),
            )
        ),
        main=(
            CALLED,
            Backward((Ref("y", ("listed", 0, ".first")), Ref("y", ("kept", ".inner", 1))), (V, V)),
        ),
    ),
    "recursion": replace(
        plain(calling(("x", "depth"), FC, Recurse("z", Ref("h"), "depth"))),
        main=(Call("y", "", (X, Literal(2))), Backward((Y,), (V,))),
    ),
    "train and eval": replace(
        plain(Sequential((BatchNorm1d(3), Linear(3, 3))), (4, 3), (4, 3)),
        main=(
            CALLED,
            Call("z", "", (Y,)),
            Train("", False),
            Train("1"),
            Call("w", "", (Z,)),
            Train(),
            Backward((Ref("w"),), (V,)),
        ),
    ),
    "gradients of leaves, parameters and intermediates": replace(
        plain(Sequential((Linear(3, 3), Linear(3, 3)))),
        inputs=(Input("x", (2, 3), True), Input("u", (1,), True), Input("v", (2, 3))),
        main=(
            CALLED,
            Apply("z", Mul(), (Y, Y)),
            Grad("g", (Z, Y), (X, Ref("net.0.weight"), Y, Ref("u")), (V, V), retain_graph=True),
            Apply("p", Mul(), (Ref("g", (0,)), X)),
            Backward((Ref("p"),), (V,)),
            Backward((Z,), (V,), inputs=(Ref("net.1.bias"),)),
        ),
    ),
    "gradient of a gradient": replace(
        plain(Sequential((Linear(3, 3), Tanh(), Linear(3, 3)))),
        main=(
            CALLED,
            Grad("g", (Y,), (X, Ref("net.2.weight")), (V,), create_graph=True),
            Apply("l", Sum(), (Ref("g", (0,)),)),
            Apply("m", Sum(), (Ref("g", (1,)),)),
            Backward((Ref("l"), Ref("m"))),
        ),
    ),
    "backward that records itself": replace(
        plain(Sigmoid()),
        main=(CALLED, Backward((Y,), (V,), create_graph=True), Call("z", "", (Y,)), Backward((Z,), (V,))),
    ),
    "own parameters and those of children": replace(
        plain(
            Composite(
                (
                    ("fc", Linear(3, 3)),
                    ("many", ParameterList(((3,), (2, 3)))),
                    ("named", ParameterDict((("a", (3,)), ("b", ())))),
                    ("steps", ModuleDict((("first", Linear(3, 3)), ("then", Tanh())))),
                ),
                ("x",),
                (
                    Call("a", "steps.first", (X,)),
                    Call("b", "steps.then", (Ref("a"),)),
                    Apply("c", Add(), (Ref("b"), Ref("self.fc.bias"))),
                    Apply("d", Mul(), (Ref("c"), Ref("self.many.1"))),
                    Apply("e", Mul(), (Ref("d"), Ref("self.named.a"))),
                    Apply("f", Add(), (Ref("e"), Ref("self.named.b"))),
                    Apply("z", Mul(), (Ref("f"), Ref("self.w"))),
                ),
                Z,
                parameters=(("w", (3,)), ("unused", (0, 2))),
            )
        ),
        main=(CALLED, Apply("z", Mul(), (Y, Ref("net.steps.first.bias"))), Backward((Z,), (V,))),
    ),
    "numbers of every domain": replace(
        plain(Linear(3, 3)),
        inputs=(
            *(
                Input(f"of_{domain}", (2, 2), False, domain, 4, "complex64" if domain == "complex" else "")
                for domain in DOMAINS
            ),
            *plain(Linear(3, 3)).inputs,
        ),
    ),
    "a dtype for each input": replace(
        plain(Linear(3, 3)),
        inputs=(
            Input("x", (2, 3), True),
            Input("w", (2, 3), True, dtype="float32"),
            Input("b", (2, 3), dtype="bfloat16"),
            Input("c", (3,), True, dtype="complex64"),
            Input("v", (2, 3)),
        ),
        main=(
            Apply("s", Add(), (Ref("w"), Ref("b"))),
            Apply("t", To("float64"), (Ref("s"),)),
            Call("y", "", (Ref("t"),)),
            Apply("p", Mul(), (Ref("y"), X)),
            Apply("q", Mul(), (Ref("p"), Ref("c"))),
            Apply("r", Mul(), (Ref("b"), Ref("b"))),
            Backward((Ref("p"),), (V,), retain_graph=True),
            Backward((Ref("q"),), (Ref("q"),)),
        ),
    ),
    "bfloat16": replace(plain(Sequential((Linear(3, 3), ReLU()))), dtype="bfloat16"),
    "complex128": replace(plain(Linear(3, 3)), dtype="complex128"),
    "complex64 beside real": replace(
        plain(Linear(3, 3)),
        dtype="complex64",
        inputs=(Input("x", (2, 3), True), Input("w", (3,), True, dtype="float32"), Input("v", (2, 3))),
        main=(Apply("s", Mul(), (X, Ref("w"))), Call("y", "", (Ref("s"),)), Backward((Y,), (V,))),
    ),
    "dropouts with masks": plain(
        Sequential((Dropout2d(keeps=(True, False)), Linear(2, 2), AlphaDropout(keeps=(False, True, True, False)))),
        (1, 2, 1, 2),
        (1, 2, 1, 2),
    ),
    "no elements": plain(Sequential((Linear(3, 2), ReLU())), (0, 3), (0, 2)),
    "in place on a view and on its base": plain(
        calling(
            ("x",),
            FC,
            Apply("a", View((6,)), (Ref("h"),)),
            Apply("b", Select(0, 1), (Ref("h"),)),
            Apply("c", MulInplace(), (Ref("b"), Ref("self.fc.bias"))),
            Apply("d", AddInplace(), (Ref("h"), X)),
            Apply("z", Mul(), (Ref("d"), Ref("c"))),
        )
    ),
    "several outputs of an operation": first_of(
        calling(
            ("x",),
            FC,
            Apply("a", Split((1, 2), 1), (Ref("h"),)),
            Apply("m", MaxOver(0, True), (Ref("h"),)),
            Apply("b", Mul(), (Ref("a", (0,)), Ref("m", (0,)))),
            Apply("z", Add(), (Ref("b"), X)),
            gives=Pack("tuple", (Z, Ref("m", (1,)))),
        )
    ),
    "several outputs of a layer": first_of(
        Composite(
            (("rnn", LSTM(3, 2)), ("pool", MaxPool1d(2, return_indices=True)), ("look", MultiheadAttention(2, 1))),
            ("x",),
            (
                Call("r", "rnn", (X,)),
                Call("p", "pool", (X,)),
                Call("a", "look", (Ref("r", (0,)), Ref("r", (0,)), Ref("r", (0,)))),
            ),
            Pack("tuple", (Ref("a", (0,)), Ref("r", (1,)), Ref("p"), Ref("a", (1,)))),
        ),
        (2, 2, 3),
        (2, 2, 2),
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
