"""accumulate: two or three training steps on one net whose gradients add up in ``.grad``, never zeroed."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import Draw
from hookcheck.topology.families.networks import backed, networks, topology
from hookcheck.topology.model import Input, Statement, Topology


@st.composite
def topologies(draw: Draw) -> Topology:
    """Forward and backward in turn, or all forwards first, each on the same inputs or on others."""
    net = draw(networks())
    inputs: list[Input] = []
    forwards: list[Statement] = []
    backwards: list[tuple[Statement, ...]] = []
    for i in range(draw(st.integers(2, 3))):
        step = net.elsewhere(f"_{i}") if i and draw(st.booleans()) else net
        more, backward = backed(draw, net.named(f"y{i}_"))
        inputs += (*step.arguments, *more)
        forwards.append(step.call(f"y{i}_"))
        backwards.append(backward)
    if draw(st.booleans()):
        main = [*forwards, *(s for backward in backwards for s in backward)]
    else:
        main = [s for forward, backward in zip(forwards, backwards) for s in (forward, *backward)]
    return topology(draw, net.module, tuple(inputs), tuple(main))
