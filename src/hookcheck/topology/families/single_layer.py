"""single-layer: each layer of torch.nn by itself, in all its settings."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.catalogue import known, layer_classes
from hookcheck.topology.families.drawing import SEEDS, Draw, losses
from hookcheck.topology.families.fitting import shapes_for
from hookcheck.topology.families.grammar import FIRST, fitted, outputs_of
from hookcheck.topology.model import Call, Input, Topology, own_parameters, walk
from hookcheck.topology.primitive import Layer
from hookcheck.topology.tree import Ref
from hookcheck.topology.values import WHOLE


def _requires(draw: Draw, layer: Layer, place: int) -> bool:
    """Whether an input requires grad: the first in any case, where there is no parameter to do so."""
    if not place and not any(own_parameters(module) for _, module in walk(layer)):
        return True
    return place not in layer.constant and draw(st.sampled_from([True, True, False]))


@st.composite
def topologies(draw: Draw) -> Topology:
    """One layer as the root, trained or evaluated, with a loss on one or all of its outputs."""
    (kind,) = known([draw(st.sampled_from([*FIRST, *sorted(layer_classes().keys() - set(FIRST))]))])
    primitive, operands = fitted(draw, kind, draw(shapes_for(kind)))
    assert isinstance(primitive, Layer)
    inputs = tuple(
        Input(f"x{i}", o.shape, o.domain not in WHOLE and _requires(draw, primitive, i), o.domain, o.below)
        for i, o in enumerate(operands)
    )
    args, kwargs = primitive.call(tuple(Ref(i.name) for i in inputs))
    outputs = outputs_of(primitive, "y", operands)
    one = draw(st.sampled_from(outputs))
    chosen = outputs if draw(st.booleans()) else [one]
    more, backward = draw(losses(tuple((f"y{i}", v.ref, v.shape) for i, v in enumerate(chosen))))
    return Topology(
        primitive,
        (*inputs, *more),
        (Call("y", "", args, kwargs), *backward),
        training=draw(st.sampled_from([True, True, False])),
        dtype=draw(st.sampled_from(["float64", "float64", "float64", "float32"])),
        seed=draw(SEEDS),
    )
