"""Assembled layers are told as calls of their children: the same calls as torch's, the same numbers in and out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookcheck.oracle.expected import Expected
from hookcheck.oracle.tolerance import assert_close
from hookcheck.topology.build import build
from hookcheck.topology.families.drawing import SEEDS
from hookcheck.topology.families.fitting import shapes_for
from hookcheck.topology.layers.loss_triplets import TripletMarginWithDistanceLoss
from hookcheck.topology.layers.transformer import Transformer, TransformerDecoder, TransformerEncoder
from hookcheck.topology.layers.transformer_layer import TransformerDecoderLayer, TransformerEncoderLayer
from hookcheck.topology.model import Backward, Call, Input, Topology
from hookcheck.topology.primitive import Assembled
from hookcheck.topology.tree import Ref
from hookcheck.topology.values import values

from .test_formulas import offered

KINDS = [
    TransformerEncoderLayer,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerDecoder,
    Transformer,
    TripletMarginWithDistanceLoss,
]


@st.composite
def topologies(draw: st.DrawFn, kind: type[Assembled]) -> Topology:
    shape = draw(shapes_for(kind, longest=4))
    layer, operands = kind.fitting(draw, shape)
    assert isinstance(layer, kind)
    inputs = tuple(
        Input(f"x{i}", operand.shape, operand.domain == "real", domain=operand.domain)
        for i, operand in enumerate(operands)
    )
    args, kwargs = layer.call(tuple(Ref(i.name) for i in inputs))
    main = (Call("y", "", args, kwargs), Backward((Ref("y"),), (Ref("v"),)))
    v = Input("v", layer.gives(operands))
    return Topology(layer, (*inputs, v), main, draw(st.booleans()), seed=draw(SEEDS))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=20)
@given(data=st.data())
def test_torch_makes_the_calls_that_the_expansion_says(kind: type[Assembled], data: st.DataObject) -> None:
    topology = data.draw(topologies(kind))
    numbers = values(topology)
    if not offered(topology.module.since):  # type: ignore[union-attr]
        return
    built = build(topology, numbers)
    calls: list[tuple[str, Any]] = []
    entered: list[str] = []
    for path, child in built.module.named_modules():
        child.register_forward_pre_hook(lambda _, __, path=path: entered.append(path))
        child.register_forward_hook(lambda _, __, output, path=path: calls.append((path, output)))
    built.run()
    expected = Expected(topology, numbers)
    assert list(built.parameters) == [name for name in numbers if name not in built.inputs]
    assert [c.path for c in expected.trace.calls] == entered
    ours = {(c.path, c.number): c.first for c in expected.trace.calls}
    counts: dict[str, int] = {}
    for path, output in calls:
        first = ours[path, counts.get(path, 0)]
        counts[path] = counts.get(path, 0) + 1
        assert first is not None
        observed = output[0] if isinstance(output, tuple) else output
        assert_close(observed.detach().numpy(), first.array)
    gradients = expected.leaf_gradients
    for name, tensor in {**built.inputs, **built.parameters}.items():
        assert (tensor.grad is None) == (name not in gradients)
        if tensor.grad is not None:
            assert expected.close(tensor.grad.numpy(), gradients[name])  # rounding can decide a relu at its kink
