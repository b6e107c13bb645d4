"""keyword-input: tensors that are passed by keyword, to parameters that may be positional and to those that may not."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from hookcheck.topology.families.calling import Argument, finished, plain, taking
from hookcheck.topology.families.container_input import alike, combined
from hookcheck.topology.families.drawing import Draw, shapes
from hookcheck.topology.families.grammar import fitted, layers_for
from hookcheck.topology.model import Call, Input, Topology
from hookcheck.topology.primitive import SingleStep
from hookcheck.topology.tree import Ref


@st.composite
def topologies(draw: Draw) -> Topology:
    """A module of our own, or a layer of torch.nn."""
    return draw(st.one_of(_of_a_body(), _of_torch()))


@st.composite
def _of_a_body(draw: Draw) -> Topology:
    """One to three tensors of which one at least is passed by keyword; any may be the only one to require grad."""
    inputs = alike(draw, draw(st.integers(1, 3)))
    sure = draw(st.sampled_from(range(len(inputs))[::-1]))
    arguments = tuple(_argument(draw, i, place == sure) for place, i in enumerate(inputs))
    writer = taking(draw, arguments, inputs)
    value = combined(draw, writer, inputs)
    return finished(draw, writer, value.ref, [value], inputs, arguments)


def _argument(draw: Draw, i: Input, keyword: bool) -> Argument:
    keyword = keyword or draw(st.booleans())
    return Argument(i.name, Ref(i.name), keyword, keyword and draw(st.booleans()))


@st.composite
def _of_torch(draw: Draw) -> Topology:
    """A layer inside a module of our own, some or all of its tensors by the names that torch has for them."""
    inputs = (Input("x", draw(shapes(most=4)), True),)
    writer = taking(draw, plain(inputs), inputs)
    value = writer.chain(writer.inputs[0], 0, 1)
    kinds = [kind for kind in layers_for(value.shape) if issubclass(kind, SingleStep)]
    layer, operands = fitted(draw, draw(st.sampled_from(kinds)), value.shape)
    assert isinstance(layer, SingleStep)
    last = draw(st.sampled_from(writer.placed(value, layer, operands)))
    call = writer.statements[-1]
    assert isinstance(call, Call)
    named = [*zip(layer.keywords, call.args)][draw(st.integers(0, len(call.args) - 1)) :]
    positional = call.args[: len(call.args) - len(named)]
    writer.statements[-1] = replace(call, args=positional, kwargs=(*named, *call.kwargs))
    return finished(draw, writer, last.ref, [last], inputs)
