"""Formulas compute in the precision of the numbers that they are given, else what is lost there is not to be seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookcheck.topology.primitive import Array, Primitive

from .primitives import existing, steps

SINGLE = {"f": np.float32, "c": np.complex64}


def narrowed(array: Array) -> Array:
    return array.astype(SINGLE[array.dtype.kind]) if array.dtype.kind in SINGLE else array


@pytest.mark.parametrize("kind", existing(), ids=lambda kind: kind.__name__)
@settings(max_examples=30)
@given(data=st.data())
def test_what_is_given_in_float32_stays_in_float32(kind: type[Primitive], data: st.DataObject) -> None:
    """Where a step is exact, which loses nothing, it need not."""
    step = data.draw(steps(kind))
    inputs, cotangents = tuple(map(narrowed, step.inputs)), tuple(map(narrowed, step.cotangents))
    parameters = {name: narrowed(array) for name, array in step.parameters.items()}
    of_inputs, of_parameters = step.primitive.vjp(inputs, parameters, cotangents)
    outputs = step.primitive.forward(inputs, parameters)
    arrays = [*outputs, *(g for g in of_inputs if g is not None), *of_parameters.values()]
    assert step.primitive.exact or not {array.dtype.name for array in arrays} & {"float64", "complex128"}
