"""branch-and-merge: one value goes two or three ways, which meet again; another way may lead nowhere."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import Draw
from hookcheck.topology.families.grammar import Value, Writer
from hookcheck.topology.families.wiring import SMALL, branch, finished, projected
from hookcheck.topology.model import Topology
from hookcheck.topology.ops import Add, Mul
from hookcheck.topology.ops.arithmetic import Maximum
from hookcheck.topology.ops.contraction import MatMul
from hookcheck.topology.ops.joining import Cat, Stack
from hookcheck.topology.ops.views import Transpose
from hookcheck.topology.primitive import MOST, Op


@st.composite
def topologies(draw: Draw) -> Topology:
    """A trunk, branches, what merges them and a chain after it, with a loss on the end or on a branch too."""
    writer = Writer(draw, draw(SMALL))
    trunk = writer.chain(writer.inputs[0], 0, 1)
    branches = [branch(writer, trunk) for _ in range(draw(st.integers(2, 3)))]
    end = writer.chain(_merged(writer, branches), 0, 2)
    more = draw(st.sampled_from(["nothing", "unused branch", "branch without loss", "branch with a loss"]))
    if more == "branch with a loss":
        return finished(writer, [end, branches[0]])
    unused = () if more == "nothing" else (branch(writer, trunk),)
    return finished(writer, [end], without_loss=unused if more == "branch without loss" else ())


def _merged(writer: Writer, values: list[Value]) -> Value:
    """All of ``values``, brought to the shape of the first, as one."""
    shape = values[0].shape
    values = [projected(writer, value, shape) for value in values]
    known: list[Op] = [Add(), Mul(), Maximum()]
    known += [Stack(dim) for dim in range(len(shape) + 1) if len(shape) < MOST]
    known += [Cat(dim) for dim in reversed(range(len(shape)))] + [MatMul()] * bool(shape)
    op = writer.draw(st.sampled_from(known))
    if isinstance(op, (Cat, Stack)):
        return writer.op(op, *values)[0]
    value = values[0]
    for other in values[1:]:
        value = _multiplied(writer, value, other) if isinstance(op, MatMul) else writer.op(op, value, other)[0]
    return value


def _multiplied(writer: Writer, left: Value, right: Value) -> Value:
    """The matrix product of ``left`` with ``right``, transposed if need be; of two vectors, that is a number."""
    if not left.shape:
        return writer.op(Mul(), left, right)[0]
    if len(right.shape) > 1 and left.shape[-1] != right.shape[-2]:
        (right,) = writer.op(Transpose(-1, -2), right)
    return writer.op(MatMul(), left, right)[0]
