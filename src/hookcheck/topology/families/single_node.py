"""single-node: a Conv2d in all its settings, which autograd records as one Node."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import Draw, convolutions, output_shape, trained
from hookcheck.topology.model import Module, Sequential, Topology


@st.composite
def topologies(draw: Draw) -> Topology:
    """One convolution, alone or as the only child of a container."""
    layer, shape = draw(convolutions())
    choices: list[Module] = [layer, Sequential((layer,))]
    module = draw(st.sampled_from(choices))
    return draw(trained(module, shape, output_shape(layer, shape)))
