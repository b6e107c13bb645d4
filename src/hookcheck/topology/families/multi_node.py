"""multi-node: Linear on inputs of one to four dimensions, alone and in containers."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import Draw, chains, contained, linears, output_shape, shapes, trained
from hookcheck.topology.model import Sequential, Topology


@st.composite
def topologies(draw: Draw) -> Topology:
    """A Linear first, perhaps more layers, in any container."""
    shape = draw(shapes(least=1, most=4))
    first = draw(linears(shape[-1]))
    rest = draw(chains(output_shape(first, shape), least=0, most=2))
    chain = (first, *rest)
    return draw(trained(draw(contained(chain)), shape, output_shape(Sequential(chain), shape)))
