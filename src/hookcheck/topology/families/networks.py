"""What do the families share whose feature lies in the passes? A network with parameters, not yet run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import DTYPES, SEEDS, Draw, losses, shapes
from hookcheck.topology.families.grammar import Value, Writer
from hookcheck.topology.families.random_graph import written
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Backward, Call, Input, Module, Statement, Topology
from hookcheck.topology.tree import Pack, Ref
from hookcheck.topology.values import parameter_shapes

Program = tuple[tuple[Input, ...], tuple[Statement, ...]]


@dataclass(frozen=True)
class Network:
    """A module, the inputs that it is called with, and its outputs, which lie under the name ``y``."""

    module: Module
    arguments: tuple[Input, ...]
    outputs: tuple[Value, ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The dotted names of all parameters."""
        return tuple(parameter_shapes(Topology(self.module, (), ())))

    def call(self, out: str = "y") -> Call:
        """``out = net(…)``."""
        return Call(out, "", tuple(Ref(i.name) for i in self.arguments))

    def named(self, out: str) -> tuple[tuple[str, Value], ...]:
        """The outputs of a call whose result is ``out``, each with a label of its own."""
        return tuple((f"{out}{i}", Value(replace(v.ref, name=out), v.shape)) for i, v in enumerate(self.outputs))

    def elsewhere(self, suffix: str) -> Network:
        """The same with inputs of other names, which therefore hold other numbers."""
        return replace(self, arguments=tuple(replace(i, name=i.name + suffix) for i in self.arguments))


def network(writer: Writer, *outputs: Value, requires_grad: bool | tuple[bool, ...] = True) -> Network:
    """What ``writer`` has written, as the root; with several outputs it gives a tuple."""
    arguments = writer.arguments(requires_grad)
    if len(outputs) == 1:
        return Network(writer.module(outputs[0].ref), arguments, (Value(Ref("y"), outputs[0].shape),))
    module = writer.module(Pack("tuple", tuple(output.ref for output in outputs)))
    return Network(module, arguments, tuple(Value(Ref("y", (i,)), output.shape) for i, output in enumerate(outputs)))


def graphed(draw: Draw, writer: Writer, value: Value) -> list[Value]:
    """A module of any shape, called on ``value``; gives its outputs."""
    inner, gives, outputs = draw(written(draw(st.integers(0, 1)), value))
    name = writer.inner(inner, gives, value)
    return [Value(Ref(name, ref.path), output.shape) for ref, output in outputs]


@st.composite
def networks(draw: Draw) -> Network:
    """A Linear and more steps or a module of any shape on it; every output requires grad, whether the input does or
    not."""
    writer = Writer(draw, draw(shapes()))
    (value,) = writer.step(writer.inputs[0], (Linear,))
    outputs = graphed(draw, writer, value) if draw(st.booleans()) else [writer.chain(value, 0, 2)]
    return network(writer, *outputs, requires_grad=draw(st.sampled_from([True, True, False])))


def backed(draw: Draw, named: tuple[tuple[str, Value], ...]) -> Program:
    """A backward from all of ``named``, with its cotangents or losses (see `losses`)."""
    return draw(losses(tuple((label, value.ref, value.shape) for label, value in named)))


def topology(
    draw: Draw,
    module: Module,
    inputs: tuple[Input, ...],
    main: tuple[Statement, ...],
    frozen: tuple[str, ...] = (),
    dtype: str = "",
    training: bool = False,
) -> Topology:
    """The topology, each input once, with its seed drawn; its dtype where none is given, its mode unless it trains."""
    return Topology(
        module,
        tuple(dict.fromkeys(inputs)),
        main,
        training=training or draw(st.sampled_from([True, True, False])),
        dtype=dtype or draw(DTYPES),
        seed=draw(SEEDS),
        frozen=frozen,
    )


def retaining(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The same, with every backward keeping its graph."""
    return tuple(replace(s, retain_graph=True) if isinstance(s, Backward) else s for s in statements)
