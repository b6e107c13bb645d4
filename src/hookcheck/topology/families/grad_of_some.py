"""grad-of-some: ``torch.autograd.grad``, or a backward with ``inputs``, for some of the tensors that have gradients."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import Draw, shapes
from hookcheck.topology.families.grammar import Writer
from hookcheck.topology.families.networks import backed, graphed, network, retaining, topology
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Apply, Backward, Grad, Leak, Statement, Topology
from hookcheck.topology.ops.elementwise import Scale
from hookcheck.topology.tree import Ref


@st.composite
def topologies(draw: Draw) -> Topology:
    """Gradients for inputs, parameters or intermediates, one or several, asked for once or twice, by autograd.grad or a
    backward, perhaps with a whole backward in the end."""
    writer = Writer(draw, draw(shapes()))
    (value,) = writer.step(writer.inputs[0], (Linear,))
    writer.statements.append(Leak("h", value.ref))
    outputs = graphed(draw, writer, value) if draw(st.booleans()) else [writer.chain(value, 0, 2)]
    net = network(writer, *outputs, requires_grad=draw(st.sampled_from([True, True, False])))
    call, inputs = net.call(), list(net.arguments)
    scaled = Apply("z", Scale(0.5), (Ref("x"),))
    steps: list[Statement] = draw(st.sampled_from([[call], [scaled, replace(call, args=(Ref("z"), *call.args[1:]))]]))
    x = [Ref(statement.out) for statement in steps[:-1] if isinstance(statement, Apply)]
    given = [Ref("x"), *x] if net.arguments[0].requires_grad else []
    parameters = [Ref(f"net.{name}") for name in net.parameters]
    between = [Ref("leaked", ("h",)), *(output.ref for output in net.outputs)]
    groups = [group for group in (given, parameters, between) if group]
    main = steps
    for i in range(draw(st.integers(1, 2))):
        some = draw(st.sampled_from([*groups, [ref for group in groups for ref in group]]))
        asked = tuple(draw(st.lists(st.sampled_from(some), min_size=1, max_size=3, unique=True)))
        more, backward = backed(draw, tuple((f"{label}_{i}", v) for label, v in net.named("y")))
        inputs += more
        main = [*main, *(_asking(draw, s, asked, i) for s in retaining(backward))]
    if draw(st.booleans()):
        more, backward = backed(draw, net.named("y"))
        inputs, main = [*inputs, *more], [*main, *backward]
    return topology(draw, net.module, tuple(inputs), tuple(main))


def _asking(draw: Draw, statement: Statement, asked: tuple[Ref, ...], number: int) -> Statement:
    """A backward turned into one for those gradients alone; other statements as they are.

    An intermediate that a backward gave ``.grad`` adds up in later passes too, so that only the first one is asked.
    """
    if not isinstance(statement, Backward):
        return statement
    out = f"g{number}"
    leaves = {ref.name == "x" or ref.name.startswith("net.") for ref in asked}
    if leaves == {True} and draw(st.booleans()):
        return replace(statement, inputs=asked)
    if leaves == {False} and not number and draw(st.booleans()):
        return replace(statement, inputs=asked, out=out)
    return Grad(out, statement.outputs, asked, statement.cotangents, statement.retain_graph)
