"""retain-graph-twice: one graph that two or three backwards go through, with the same cotangents or others."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import Draw
from hookcheck.topology.families.networks import backed, networks, retaining, topology
from hookcheck.topology.model import Input, Statement, Topology


@st.composite
def topologies(draw: Draw) -> Topology:
    """One forward and several backwards, of which all but the last, or all, keep the graph."""
    net = draw(networks())
    inputs: list[Input] = []
    main: list[Statement] = [net.call()]
    steps = draw(st.integers(2, 3))
    for i in range(steps):
        if not i or draw(st.booleans()):
            places = tuple((f"{label}_{i}", value) for label, value in net.named("y"))
            more, backward = backed(draw, places)
            inputs += more
            main += backward[:-1]
        main += retaining(backward[-1:]) if i < steps - 1 or draw(st.booleans()) else backward[-1:]
    return topology(draw, net.module, (*net.arguments, *inputs), tuple(main))
