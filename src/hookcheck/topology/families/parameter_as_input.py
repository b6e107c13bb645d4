"""parameter-as-input: a parameter is an argument of a module call: one's own, a child's, or the net's from outside."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import WIDTHS, Draw, layers, shapes
from hookcheck.topology.families.grammar import Value, Writer
from hookcheck.topology.families.networks import backed, network, topology
from hookcheck.topology.families.partial_grad_inputs import met_here, met_inside
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Call, Topology
from hookcheck.topology.primitive import Operand
from hookcheck.topology.tree import Ref


@st.composite
def topologies(draw: Draw) -> Topology:
    """The parameter goes through a layer or, beside a value, into a module; main hands it to the net where it comes
    from outside. It may be frozen."""
    where = draw(st.sampled_from(["w", "m0.weight", "main"]))
    shape, width = draw(shapes()), draw(WIDTHS)
    writer = Writer(draw, shape, *([(width, shape[-1])] if where == "main" else []))
    value, *given = writer.inputs
    if where == "w":
        writer.parameters.append(("w", draw(shapes())))
        parameter = Value(Ref("self.w"), writer.parameters[0][1])
    else:
        linear = Linear(shape[-1], width, draw(st.booleans()))
        (value,) = writer.call(writer.child(linear), linear, (value.ref,), (Operand(shape),))
        (parameter,) = given or [Value(Ref("self.m0.weight"), (width, shape[-1]))]
    if draw(st.booleans()):
        result = met_inside(draw, writer, *draw(st.permutations([parameter, value])))
    else:
        layer = draw(layers(parameter.shape))
        (output,) = writer.call(writer.child(layer), layer, (parameter.ref,), (Operand(parameter.shape),))
        result = met_here(draw, writer, value, output)
    net = network(writer, writer.chain(result, 0, 1))
    name = "w" if where == "w" else "m0.weight"
    frozen = draw(st.sampled_from([(), (), (name,)]))
    x, *further = (i for i in net.arguments if i.name != "x1")
    passed = [Ref(f"net.{name}")] if given else []
    requires_grad = draw(st.sampled_from([True, bool(frozen)]))
    inputs, backward = backed(draw, net.named("y"))
    call = Call("y", "", (Ref(x.name), *passed, *(Ref(i.name) for i in further)))
    return topology(
        draw, net.module, (replace(x, requires_grad=requires_grad), *further, *inputs), (call, *backward), frozen=frozen
    )
