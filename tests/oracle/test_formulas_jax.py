"""Each layer's and operation's VJP against ``jax.vjp``, a second opinion that shares no code with torch or with us."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookcheck.oracle.tolerance import assert_close
from hookcheck.topology.layers.batched import Batched
from hookcheck.topology.primitive import Primitive

from . import in_jax
from .primitives import existing, steps

pytestmark = pytest.mark.slow

# XLA's algebraic simplifier aborts the process on some convolutions whose operands it swaps (seen with jax 0.10.2: one
# ConvTranspose2d of 400), and folds negative padding wrongly (https://github.com/openxla/xla/issues/48715). XLA reads
# this once, before its first computation.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_disable_hlo_passes=algsimp"
jax = pytest.importorskip("jax", reason="the second opinion on the formulas needs JAX")
jax.config.update("jax_enable_x64", True)

GROUPS = [
    importlib.import_module(f"{in_jax.__name__}.{module.name}") for module in pkgutil.iter_modules(in_jax.__path__)
]
IN_JAX = {kind: written for group in GROUPS for kind, written in group.IN_JAX.items()}
NOT_IN_JAX = {kind: why for group in GROUPS for kind, why in group.NOT_IN_JAX.items()}


@pytest.fixture(autouse=True)
def _forget_what_jax_compiled() -> Iterator[None]:
    """JAX holds what it compiled for each shape until the process ends: gigabytes, over all layers."""
    yield
    jax.clear_caches()


def test_every_layer_and_operation_is_in_jax_or_said_not_to_be() -> None:
    missing = sorted(kind.__name__ for kind in {*existing()} - {*IN_JAX, *NOT_IN_JAX})
    assert not missing, "add it to IN_JAX or NOT_IN_JAX of a file in tests/oracle/in_jax/"
    assert set(existing()) == {*IN_JAX, *NOT_IN_JAX}
    assert not set(IN_JAX) & set(NOT_IN_JAX)
    assert all(NOT_IN_JAX.values())


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", IN_JAX, ids=lambda kind: kind.__name__)
@settings(max_examples=3)
@given(data=st.data())
def test_forward_and_vjp_are_those_of_jax(kind: type[Primitive], data: st.DataObject) -> None:
    """On few draws, since JAX compiles for each shape; on 30 the formulas are held against torch and differences."""
    step = data.draw(steps(kind))
    primitive = step.primitive
    floats = [i for i, x in enumerate(step.inputs) if x.dtype.kind in "fc"]

    def function(inputs: Any, parameters: Any) -> Any:
        given = list(step.inputs)
        for i, x in zip(floats, inputs):
            given[i] = x
        everything = {**step.parameters, **parameters}
        if not isinstance(primitive, Batched):
            return IN_JAX[kind](primitive, given, everything)
        of_batch = IN_JAX[kind](primitive, primitive.batched(tuple(given), primitive.axes_in(len(given))), everything)
        return primitive.bare(of_batch, primitive.axes_out)

    def forward_and_vjp(inputs: Any, parameters: Any, cotangents: Any) -> Any:
        outputs, pull = jax.vjp(function, inputs, parameters)
        return outputs, pull(cotangents)

    trained = {name: step.parameters[name] for name in primitive.parameters()}
    observed = primitive.forward(step.inputs, step.parameters)
    differentiable = [j for j, y in enumerate(observed) if y.dtype.kind in "fc"]
    # Compiled as one: each operation alone would be compiled for its shapes.
    outputs, (wanted_inputs, wanted_parameters) = jax.jit(forward_and_vjp)(
        [step.inputs[i] for i in floats], trained, tuple(step.cotangents[j] for j in differentiable)
    )
    assert len(outputs) == len(differentiable)
    for j, output in zip(differentiable, outputs):
        assert_close(observed[j], np.asarray(output))
    of_inputs, of_parameters = primitive.vjp(step.inputs, step.parameters, step.cotangents)
    for i, theirs in zip(floats, wanted_inputs):
        gradient = of_inputs[i]
        assert gradient is not None
        assert_close(gradient, np.asarray(theirs))
    assert of_parameters.keys() == wanted_parameters.keys()
    for name, gradient in of_parameters.items():
        assert_close(gradient, np.asarray(wanted_parameters[name]))
