"""Networks by hand, one for each situation that a fault may need to show itself."""

from __future__ import annotations

from dataclasses import replace

from hookcheck.topology.layers.activation import Tanh
from hookcheck.topology.layers.embedding import Embedding
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import (
    Apply,
    Backward,
    Call,
    Composite,
    Grad,
    Input,
    Leak,
    Module,
    Recurse,
    Sequential,
    Statement,
    Topology,
    Within,
)
from hookcheck.topology.ops import Add, Mul, Sum
from hookcheck.topology.ops.inplace import AddInplace
from hookcheck.topology.ops.joining import Split
from hookcheck.topology.ops.tensors import AsDense, AsTensor
from hookcheck.topology.tree import Literal, Pack, Ref, Tree

X, H, Y, V, Z, U = Ref("x"), Ref("h"), Ref("y"), Ref("v"), Ref("z"), Ref("u")
INPUTS = (Input("x", (2, 3), requires_grad=True), Input("v", (2, 3)))
BESIDES = (*INPUTS, Input("z", (2, 3), requires_grad=True))
FC = Call("h", "fc", (X,))
CALLED = Call("y", "", (X,))
FROM_Y = Backward((Y,), (V,))
FIRST, SECOND = Ref("y", (0,)), Ref("y", (1,))
FROM_FIRST, FROM_BOTH = Backward((FIRST,), (V,)), Backward((FIRST, SECOND), (V, U))


def net(takes: tuple[str, ...], *body: Statement, gives: Tree = H, keywords: tuple[str, ...] = ()) -> Composite:
    """A module with two Linears, ``fc`` and ``other``."""
    return Composite((("fc", Linear(3, 3)), ("other", Linear(3, 3))), takes, body, gives, keywords)


def run(module: Module, *main: Statement, inputs: tuple[Input, ...] = (*INPUTS, Input("u", (2, 3)))) -> Topology:
    """``module`` run as ``main`` says; if it says nothing, called on ``x``, and a backward from its output."""
    return Topology(module, inputs, main or (CALLED, FROM_Y))


OTHER = Call("z", "other", (X,))
PAIR = net(("x",), FC, OTHER, gives=Pack("tuple", (H, Z)))
SUM = net(("x", "z"), FC, Call("q", "other", (Z,)), Apply("s", Add(), (H, Ref("q"))), gives=Ref("s"))
TWO_INPUTS = run(SUM, Call("y", "", (X, Z)), FROM_Y, inputs=BESIDES)
TWO_BACKWARDS = run(Linear(3, 3), CALLED, Backward((Y,), (V,), retain_graph=True), Backward((Y,), (U,)))


def given(by: str, reached: Ref) -> Topology:
    """``fc(x)`` in a container, and a backward from where it lies in there."""
    keys = ("first", "second") if by in ("dict", "namedtuple") else ()
    return run(net(("x",), FC, OTHER, gives=Pack(by, (H, Z), keys)), CALLED, Backward((reached,), (V,)))


BY_HAND = {
    "one layer": run(Linear(3, 3)),
    "layers in a row": run(Sequential((Linear(3, 3), Tanh(), Linear(3, 3)))),
    "eval mode": replace(run(Sequential((Linear(3, 3), Tanh()))), training=False),
    "single precision": replace(run(Sequential((Linear(3, 3), Tanh()))), dtype="float32"),
    "no input requires grad": run(Sequential((Linear(3, 3), Tanh())), inputs=(Input("x", (2, 3)), *INPUTS[1:])),
    "nothing requires grad": replace(
        run(Linear(3, 3), CALLED, inputs=(Input("x", (2, 3)),)), frozen=("weight", "bias")
    ),
    "under no_grad": run(Sequential((Linear(3, 3), Tanh())), Within("no_grad", (CALLED,))),
    "in a checkpoint": run(Sequential((Linear(3, 3), Tanh())), replace(CALLED, context="checkpoint"), FROM_Y),
    "through a functional call": run(Linear(3, 3), replace(CALLED, context="functional_call"), FROM_Y),
    "an evaluation between": run(Linear(3, 3), CALLED, Within("no_grad", (Call("z", "", (X,)),)), FROM_Y),
    "the gradient of an intermediate": run(
        net(("x",), FC, Leak("h", H), Call("z", "other", (H,)), gives=Z),
        CALLED,
        Backward((Ref("leaked", ("h",)), Y), (V, U)),
    ),
    "positions without a Tensor": run(
        net(("flag", "x", "none"), FC, gives=Pack("tuple", (H, Literal("text")))),
        Call("y", "", (Literal(True), X, Literal(None))),
        FROM_FIRST,
    ),
    "a position without a Tensor between two": run(
        replace(SUM, takes=("x", "factor", "z")), Call("y", "", (X, Literal(2), Z)), FROM_Y, inputs=BESIDES
    ),
    "an output without a Tensor between two": run(
        net(("x",), FC, OTHER, gives=Pack("tuple", (H, Literal(None), Z))),
        CALLED,
        Backward((FIRST, Ref("y", (2,))), (V, U)),
    ),
    "an output that is not used": run(net(("x",), FC, gives=Pack("tuple", (H, X))), CALLED, FROM_FIRST),
    "an output of a child that is not used": run(
        Composite((("pair", PAIR),), ("x",), (Call("p", "pair", (X,)),), Ref("p", (0,)))
    ),
    "two outputs": run(PAIR, CALLED, FROM_BOTH),
    "two outputs of one step": run(
        net(("x",), FC, Apply("p", Split((1, 2), 1), (H,)), gives=Pack("tuple", (Ref("p", (0,)), Ref("p", (1,))))),
        CALLED,
        Backward((FIRST, SECOND), (Ref("v"), Ref("u"))),
        inputs=(INPUTS[0], Input("v", (2, 1)), Input("u", (2, 2))),
    ),
    "two inputs that require grad": TWO_INPUTS,
    "two inputs, one of which requires grad": replace(TWO_INPUTS, inputs=(*INPUTS, Input("z", (2, 3)))),
    "two inputs, the second of which requires grad": replace(TWO_INPUTS, inputs=(Input("x", (2, 3)), *BESIDES[1:])),
    "an input that is not used": run(net(("x", "z"), FC), Call("y", "", (X, Z)), FROM_Y, inputs=BESIDES),
    "one tensor given twice": run(SUM, Call("y", "", (X, X)), FROM_Y),
    "a residual connection": run(
        net(("x",), FC, Apply("s", Add(), (H, X)), gives=Ref("s")),
        CALLED,
        Apply("t", Add(), (Y, X)),
        Backward((Ref("t"),), (V,)),
    ),
    "a tensor by keyword": run(replace(SUM, keywords=("z",)), Call("y", "", (X,), (("z", Z),)), FROM_Y, inputs=BESIDES),
    "tensors in a list": run(
        net(
            ("x", "many"),
            FC,
            Call("q", "other", (Ref("many", (0,)),)),
            Apply("s", Add(), (H, Ref("q"))),
            gives=Ref("s"),
        ),
        Call("y", "", (X, Pack("list", (Z,)))),
        FROM_Y,
        inputs=BESIDES,
    ),
    "a namedtuple by field": given("namedtuple", Ref("y", (".first",))),
    "a namedtuple by place": given("namedtuple", FIRST),
    "a list": given("list", FIRST),
    "a dict": given("dict", Ref("y", ("first",))),
    "a module that is called twice": run(net(("x",), FC, Call("z", "fc", (H,)), gives=Z)),
    "a module under two names": replace(
        run(net(("x",), FC, Call("z", "other", (H,)), gives=Z)), ties=(("other", "fc"),)
    ),
    "a module that calls itself": run(
        net(("x", "depth"), FC, Recurse("z", H, "depth"), Call("w", "other", (Z,)), gives=Ref("w")),
        Call("y", "", (X, Literal(2))),
        FROM_Y,
    ),
    "two forwards": run(Linear(3, 3), CALLED, Call("z", "", (X,)), FROM_Y, Backward((Z,), (U,))),
    "two backwards": TWO_BACKWARDS,
    "a backward for the parameters alone": run(
        Sequential((Linear(3, 3), Linear(3, 3))), CALLED, Backward((Y,), (V,), inputs=(Ref("net.1.weight"),))
    ),
    "a backward of a backward": run(
        Sequential((Linear(3, 3), Tanh())),
        CALLED,
        Grad("g", (Y,), (X,), (V,), create_graph=True),
        Apply("l", Sum(), (Ref("g", (0,)),)),
        Backward((Ref("l"),)),
    ),
    "a penalty on the gradient": run(
        Sequential((Linear(3, 3), Tanh())),
        CALLED,
        Grad("g", (Y,), (X,), (V,), create_graph=True),
        Apply("p", Mul(), (Y, Ref("g", (0,)))),
        Backward((Ref("p"),), (U,)),
    ),
    "written to in place inside": run(
        net(("x",), FC, Apply("s", Add(), (H, X)), Apply("t", AddInplace(), (Ref("s"), X)), gives=Ref("t"))
    ),
    "an output written to in place": run(net(("x",), FC, Apply("t", AddInplace(), (H, X)), gives=Ref("t"))),
    "an output written to in place behind the module": run(
        Linear(3, 3), CALLED, Apply("t", AddInplace(), (Y, X)), Backward((Ref("t"),), (V,))
    ),
    "an input written to in place": run(
        Sequential((Linear(3, 3), net(("x",), Apply("t", AddInplace(), (X, Ref("self.fc.bias"))), FC)))
    ),
    "a sparse tensor given to a module": run(
        net(("x",), Apply("d", AsDense("sparse COO"), (X,)), Call("h", "fc", (Ref("d"),))),
        inputs=(Input("x", (2, 3), requires_grad=True, tensor="sparse COO"), INPUTS[1]),
    ),
    "a tensor that holds another": run(
        net(
            ("x",),
            Apply("w", AsTensor("wrapper"), (X,)),
            Call("g", "fc", (Ref("w"),)),
            Apply("h", AsDense("wrapper"), (Ref("g"),)),
        )
    ),
    "a tensor of a subclass": run(Tanh(), inputs=(replace(INPUTS[0], tensor="subclass"), INPUTS[1])),
    "a sparse gradient": run(
        Embedding(4, 3, sparse=True), inputs=(Input("x", (2,), domain="index", below=4), INPUTS[1])
    ),
    "a backward before a write in place": run(
        Linear(3, 3),
        CALLED,
        Backward((Y,), (V,), retain_graph=True),
        Apply("t", AddInplace(), (Y, X)),
        Backward((Ref("t"),), (V,)),
    ),
}
"""What a network has about it, and the network."""
