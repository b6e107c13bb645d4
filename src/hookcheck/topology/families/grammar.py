"""How is a network written, step by step? The one writer behind all families that are more than a chain.

A `Writer` writes the body of one module: it holds the values that are there so far and adds a step on one of them, a
layer, an operation or a module of our own. What a step needs besides (a target, a state, an index) becomes an argument
of the module, and of those around it, up to an input of the topology. Every draw is valid as it is made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

from hookcheck.topology.catalogue import known, layer_classes, op_classes
from hookcheck.topology.families.drawing import repeated
from hookcheck.topology.families.fitting import output_shapes, that_take
from hookcheck.topology.model import Apply, Call, Composite, Input, Module, Statement
from hookcheck.topology.ops import Add
from hookcheck.topology.ops.functional import FunctionalSigmoid, FunctionalTanh
from hookcheck.topology.primitive import Assembled, Drawn, Layer, Op, Operand, Primitive, Shape
from hookcheck.topology.tree import Literal, Pack, Ref, Tree

Draw = st.DrawFn

FIRST = ("Sigmoid", "Linear", "Tanh", "ReLU", "LayerNorm", "Softmax", "GELU", "Dropout", "Identity")
"""The layers that are tried first, so that a counterexample is told in terms of them. The first has no settings; the
second is the last that Hypothesis always tries, wherever it comes from."""

ALONE = {
    "CTCLoss": "its input must be log-probabilities",
    "Embedding": "its input is an index",
    "EmbeddingBag": "its input is an index",
    "NLLLoss2d": "it is NLLLoss under an old name, and warns",
}
"""The layers that no chain goes through, each with the reason; `layers` draws them on inputs of their own."""

FIRST_OPS = (
    "Neg",
    "Scale",
    "Shift",
    "FunctionalReLU",
    "FunctionalTanh",
    "FunctionalSigmoid",
    "FunctionalGELU",
    "Sin",
    "Abs",
    "Clamp",
    "Clone",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Maximum",
    "Minimum",
    "Where",
    "MatMul",
    "Bmm",
    "Einsum",
    "SumOver",
    "MeanOver",
    "AMax",
    "LogSumExp",
    "Max",
    "Norm",
    "Prod",
    "Log",
    "Sqrt",
    "FunctionalSoftmax",
    "Cumsum",
    "Flip",
    "Roll",
    "Tril",
    "Gather",
    "MaskedFill",
    "Reshape",
    "Permute",
    "Transpose",
    "Unsqueeze",
    "Narrow",
    "Index",
    "AdvancedIndex",
    "Select",
    "Squeeze",
    "Expand",
    "Cat",
    "Stack",
    "Split",
    "Chunk",
    "Unbind",
)
"""The operations that a chain goes through and that are tried first, simple ones before others."""

OPS_ALONE = {
    **dict.fromkeys(("AsTensor", "AsDense"), "the family tensor-class is about them"),
    "To": "it is drawn where the dtype of what follows is known",
    "Detach": "nothing before it would have a gradient",
    "View": "it takes only what lies in order in memory",
    "Exp": "it makes numbers too large to hold",
    "Pow": "it makes numbers too large to hold",
}
"""The operations that are no step on the way, each with the reason; nor is what works in place, which only some places
allow."""

OF_REAL_CHAINS = {
    **dict.fromkeys(("Complex", "Real", "Imag", "Conj", "ViewAsReal"), "the family mixed-dtype is about them"),
    **dict.fromkeys(("Sum", "Mean"), "SumOver and MeanOver stand for them"),
    "MaxOver": "it gives indices as well: the family multi-output is about it",
}
"""Nor are these on the way of a real tensor."""


@dataclass(frozen=True)
class Value:
    """A floating or complex tensor that a body has: how it is referred to, and its shape."""

    ref: Ref
    shape: Shape


@lru_cache(maxsize=1)
def simple_first() -> tuple[type[Drawn], ...]:
    """All layers and operations, those ahead that are tried first."""
    rest = {**layer_classes(), **op_classes()}.keys() - {*FIRST, *FIRST_OPS}
    return known([*FIRST, *FIRST_OPS, *sorted(rest)])


def having(trait: str) -> tuple[type[Drawn], ...]:
    """Those that say of themselves that they have it, as `Drawn` lists; none that always works in place."""
    return tuple(kind for kind in simple_first() if getattr(kind, trait) and not overwrites(kind))


@lru_cache(maxsize=4096)
def layers_for(shape: Shape) -> tuple[type[Drawn], ...]:
    """The layers that a chain may go through from a tensor of ``shape``, simple ones first."""
    return that_take(known([*FIRST, *sorted(layer_classes().keys() - {*FIRST, *ALONE})]), shape)


@lru_cache(maxsize=4096)
def ops_for(shape: Shape) -> tuple[type[Drawn], ...]:
    """The operations that a chain may go through from a tensor of ``shape``, simple ones first."""
    return that_take(known([*FIRST_OPS, *_other_ops()]), shape)


def _other_ops() -> list[str]:
    listed = {*FIRST_OPS, *OPS_ALONE, *OF_REAL_CHAINS}
    return [name for name, kind in op_classes().items() if name not in listed and not overwrites(kind)]


def overwrites(kind: type[Drawn]) -> bool:
    """Whether a step of that kind works in place whatever its settings are."""
    return getattr(kind, "writes", None) is True


def fitted(draw: Draw, kind: type[Drawn], shape: Shape) -> tuple[Drawn, tuple[Operand, ...]]:
    """A step of that kind for ``shape``; never one that works in place, which only some places allow."""
    primitive, operands = kind.fitting(draw, shape)
    settings: Any = primitive
    return (replace(settings, inplace=False) if hasattr(primitive, "inplace") else primitive), operands


class Writer:
    """Writes the body of one module: a composite of the steps that it was told to write."""

    def __init__(self, draw: Draw, *shapes: Shape) -> None:
        """The module takes tensors of these shapes, as ``x`` or ``x0``, ``x1``, …"""
        self.draw = draw
        names = ["x"] if len(shapes) == 1 else [f"x{i}" for i in range(len(shapes))]
        self.inputs = tuple(Value(Ref(name), shape) for name, shape in zip(names, shapes))
        self.takes = names
        self.needs: list[tuple[str, Operand]] = []
        self.keywords: list[str] = []
        self.children: list[tuple[str, Module]] = []
        self.parameters: list[tuple[str, Shape]] = []
        self.statements: list[Statement] = []
        self.count = 0

    def named(self) -> str:
        """A new name for a value."""
        self.count += 1
        return f"h{self.count - 1}"

    def need(self, operand: Operand) -> Ref:
        """A further argument of the module, which its caller must provide."""
        name = f"a{len(self.needs)}"
        self.needs.append((name, operand))
        return Ref(name)

    def child(self, module: Module) -> str:
        """A new child; gives its name."""
        name = f"m{len(self.children)}"
        self.children.append((name, module))
        return name

    def op(self, op: Op, *values: Value | Ref) -> list[Value]:
        """Applies an operation; gives its floating outputs."""
        shapes = [v.shape for v in values if isinstance(v, Value)]
        operands = tuple(Operand(shape) for shape in shapes)
        refs = tuple(v.ref if isinstance(v, Value) else v for v in values)
        return self.applied(op, refs, operands)

    def applied(self, op: Op, refs: tuple[Ref, ...], operands: tuple[Operand, ...]) -> list[Value]:
        """Applies an operation to what the operands describe; gives its floating outputs."""
        out = self.named()
        self.statements.append(Apply(out, op, refs))
        return outputs_of(op, out, operands)

    def call(self, name: str, layer: Layer, refs: tuple[Tree, ...], operands: tuple[Operand, ...]) -> list[Value]:
        """Calls the child of that name, which is ``layer``; gives its floating outputs."""
        out = self.named()
        args, kwargs = layer.call(refs)
        self.statements.append(Call(out, name, args, kwargs))
        return outputs_of(layer, out, operands)

    def step(self, value: Value, kinds: tuple[type[Drawn], ...]) -> list[Value]:
        """A new layer or operation of one of ``kinds`` on ``value``; gives its floating outputs."""
        return self.placed(value, *fitted(self.draw, self.draw(st.sampled_from(kinds)), value.shape))

    def placed(self, value: Value, primitive: Drawn, operands: tuple[Operand, ...]) -> list[Value]:
        """That layer or operation, drawn for ``value``, on it; gives its floating outputs."""
        if operands[0].domain in ("unit", "positive"):
            (value,) = self.op(FunctionalTanh(), value)  # so near 0 or 1 that rounding decides, nothing can be judged
            (value,) = self.op(FunctionalSigmoid(), value)
        refs = (value.ref, *(self.need(operand) for operand in operands[1:]))
        if isinstance(primitive, Op):
            return self.applied(primitive, refs, operands)
        assert isinstance(primitive, Layer)
        return self.call(self.child(primitive), primitive, refs, operands)

    def layer(self, value: Value) -> Value:
        """Any layer on ``value``; gives one of its outputs, the first unless drawn otherwise."""
        return self.draw(st.sampled_from(self.step(value, layers_for(value.shape))))

    def chain(self, value: Value, least: int = 1, most: int = 3) -> Value:
        """Layers and operations, one on the other."""
        values = [value]

        def step() -> None:
            last = values[-1]
            operation = self.draw(st.integers(0, 3)) == 3
            kinds = (operation and ops_for(last.shape)) or layers_for(last.shape)
            outputs = self.step(last, kinds)
            values.append(self.draw(st.sampled_from([value for value in outputs if all(value.shape)] or outputs)))

        repeated(self.draw, step, least, most)
        return values[-1]

    def inner(self, other: Writer, gives: Tree, *values: Value | Ref) -> str:
        """Calls the module that ``other`` has written, new as a child, on these values; gives the result's name."""
        return self.again(self.child(other.module(gives)), other, *values)

    def again(self, name: str, other: Writer, *values: Value | Ref) -> str:
        """Calls the child of that name, which ``other`` has written; gives the result's name."""
        out = self.named()
        refs = tuple(v.ref if isinstance(v, Value) else v for v in values)
        further = tuple(self.need(operand) for _, operand in other.needs)
        self.statements.append(Call(out, name, (*refs, *further)))
        return out

    def module(self, gives: Tree) -> Composite:
        """The module as written so far."""
        return Composite(
            tuple(self.children),
            (*self.takes, *(name for name, _ in self.needs)),
            tuple(self.statements),
            gives,
            tuple(self.keywords),
            tuple(self.parameters),
        )

    def arguments(self, requires_grad: bool | tuple[bool, ...] = True) -> tuple[Input, ...]:
        """The inputs of a topology that has this module as its root: what it takes, and what its steps need."""
        flags = requires_grad if isinstance(requires_grad, tuple) else (requires_grad,) * len(self.inputs)
        main = tuple(Input(v.ref.name, v.shape, flag) for v, flag in zip(self.inputs, flags))
        return (*main, *(Input(name, o.shape, False, o.domain, o.below) for name, o in self.needs))


def outputs_of(primitive: Drawn, out: str, operands: tuple[Operand, ...]) -> list[Value]:
    """The floating and complex tensors among what a step gives under the name ``out``."""
    if isinstance(primitive, Assembled):
        return [Value(Ref(out), primitive.gives(operands))]
    assert isinstance(primitive, Primitive)
    shapes = output_shapes(primitive, operands)
    values: list[Value] = []

    def visit(part: Any, path: tuple[int | str, ...]) -> None:
        if isinstance(part, tuple):
            for i, item in enumerate(part):
                visit(item, (*path, i))
        elif part is not None and shapes[part][1] in "fc":
            values.append(Value(Ref(out, path), shapes[part][0]))

    visit(primitive.result(tuple(range(len(shapes)))), ())
    return values


def merged(writer: Writer, left: Value, right: Value) -> Value:
    """The sum of two values of one shape."""
    return writer.op(Add(), left, right)[0]


def packed(values: list[Tree], kind: str, keys: tuple[str, ...] = ()) -> Pack:
    """A container of that kind."""
    return Pack(kind, tuple(values), keys)


def literal(value: bool | int | float | str | None) -> Literal:
    """An argument or output that is no tensor."""
    return Literal(value)
