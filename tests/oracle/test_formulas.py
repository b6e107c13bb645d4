"""Each layer's and operation's formulas: the forward against torch's, the VJP against central differences of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from hookcheck.oracle.tolerance import assert_close
from hookcheck.probe.copying import array_of
from hookcheck.topology.primitive import Array, Drawn, Layer, Op, Primitive
from hookcheck.topology.source import expression
from hookcheck.topology.tree import Ref

from .primitives import Step, constructed, existing, steps, with_cotangents

KINDS = list(existing())
examples = settings(max_examples=30)
SINGLE = {"f": np.float32, "c": np.complex64}
STEP = 2.0**-17  # near the cube root of float64's rounding, where central differences are most exact


def applied(step: Step, training: bool = True) -> tuple[torch.nn.Module | None, Any]:
    """What torch computes from the primitive's own source line, in float64 (complex128 for complex numbers)."""
    names: dict[str, Any] = {"nn": torch.nn, "torch": torch}
    names.update((f"x{i}", torch.tensor(x)) for i, x in enumerate(step.inputs))
    refs = tuple(Ref(f"x{i}") for i in range(len(step.inputs)))
    if not isinstance(step.primitive, Layer):
        assert isinstance(step.primitive, Op)
        return None, eval(step.primitive.source(*map(expression, refs)), names)
    module = constructed(step.primitive)
    floats = [x for x in (*step.inputs, *step.parameters.values()) if x.dtype.kind in "fc"]
    module.to(torch.complex128 if any(map(np.iscomplexobj, floats)) else torch.float64).train(training)
    with torch.no_grad():
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if name in step.parameters:
                tensor.copy_(torch.tensor(step.parameters[name]))
    args, kwargs = step.primitive.call(refs)
    called = ", ".join([*map(expression, args), *(f"{key}={expression(value)}" for key, value in kwargs)])
    return module, eval(f"module({called})", {**names, "module": module})


def assert_like(ours: Any, theirs: Any) -> None:
    """The same structure, with the same numbers."""
    if isinstance(ours, tuple):
        assert isinstance(theirs, (tuple, list))
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            assert_like(a, b)
    elif ours is None:
        assert theirs is None
    else:
        observed = array_of(theirs)
        assert ours.dtype == observed.dtype
        assert_close(ours, observed)


def offered(since: str) -> bool:
    """Whether this torch has what came with the release ``since``."""
    return Version(torch.__version__).release >= Version(since).release


def taken(primitive: Primitive) -> bool:
    """Whether this torch has it, and takes such inputs."""
    assert isinstance(primitive, (Layer, Op))
    return offered(primitive.since) and offered(primitive.unbatched_since or primitive.since)


def assert_forward(step: Step) -> None:
    module, theirs = applied(step)
    outputs = step.primitive.forward(step.inputs, step.parameters)
    if not isinstance(step.primitive, Layer):
        if step.primitive.casts:
            assert theirs.dtype == getattr(torch, step.primitive.casts)
            theirs = theirs.to(torch.complex128 if theirs.is_complex() else torch.float64)
        return assert_like(outputs if isinstance(theirs, (tuple, list)) else outputs[0], theirs)
    assert module is not None
    assert_like(step.primitive.result(outputs), theirs)
    in_order = [(name, tuple(p.shape)) for name, p in module.named_parameters()]
    assert in_order == list(step.primitive.parameters().items())
    after = {**step.primitive.buffers(), **step.primitive.updated(step.inputs, step.parameters)}
    buffers = dict(module.named_buffers())
    assert after.keys() <= buffers.keys()
    for name, array in after.items():
        assert_close(np.asarray(array, dtype=float), buffers[name].double().numpy())
    return None


def slopes(value: Callable[[], float], array: Array) -> Array:
    """The central differences of ``value`` with respect to each element of ``array``, which it reads.

    For complex numbers the slope along the real part plus i times that along the imaginary part: the convention of
    torch's notes on autograd for complex numbers.
    """
    differences = np.zeros_like(array)
    for index in np.ndindex(*array.shape):
        element = array[index]
        for direction in (1, 1j) if np.iscomplexobj(array) else (1,):
            array[index] = element + direction * STEP
            above = value()
            array[index] = element - direction * STEP
            differences[index] += direction * (above - value()) / (2 * STEP)
            array[index] = element
    return differences


def differentiated(step: Step) -> Iterator[tuple[Array, Array]]:
    """For each input and each parameter: what the VJP gives, and the central differences of our own forward."""
    primitive, inputs, parameters = step.primitive, step.inputs, step.parameters

    def value() -> float:
        outputs = primitive.forward(inputs, parameters)
        pairs = [(v, y) for v, y in zip(step.cotangents, outputs) if y.dtype.kind in "fc"]
        return sum(float((v.conj() * y).sum().real) for v, y in pairs)

    if primitive.defined:
        return
    of_inputs, of_parameters = primitive.vjp(inputs, parameters, step.cotangents)
    assert len(of_inputs) == len(inputs)
    assert of_parameters.keys() == primitive.parameters().keys()
    for array, gradient in [
        *zip(inputs, of_inputs),
        *((parameters[name], of_parameters[name]) for name in of_parameters),
    ]:
        assert gradient is not None or array.dtype.kind in "bi"
        if gradient is not None:
            yield gradient, slopes(value, array)


def assert_slopes(step: Step) -> None:
    for gradient, slope in differentiated(step):
        assert_close(gradient, slope, doubled=True)


def assert_arguments_are_left_alone(step: Step) -> None:
    arrays = [*step.inputs, *step.parameters.values(), *step.cotangents]
    before = [array.copy() for array in arrays]
    step.primitive.forward(step.inputs, step.parameters)
    step.primitive.vjp(step.inputs, step.parameters, step.cotangents)
    if isinstance(step.primitive, Layer):
        step.primitive.updated(step.inputs, step.parameters)
    assert all(np.array_equal(a, b) for a, b in zip(arrays, before))


def narrowed(array: Array) -> Array:
    return array.astype(SINGLE[array.dtype.kind]) if array.dtype.kind in SINGLE else array


def assert_precision_is_kept(step: Step) -> None:
    """What is given in float32 stays in it, else what is lost there is not to be seen; what is exact loses nothing."""
    inputs, cotangents = tuple(map(narrowed, step.inputs)), tuple(map(narrowed, step.cotangents))
    parameters = {name: narrowed(array) for name, array in step.parameters.items()}
    of_inputs, of_parameters = step.primitive.vjp(inputs, parameters, cotangents)
    outputs = step.primitive.forward(inputs, parameters)
    arrays = [*outputs, *(g for g in of_inputs if g is not None), *of_parameters.values()]
    assert step.primitive.exact or not {array.dtype.name for array in arrays} & {"float64", "complex128"}


def assert_formulas(step: Step) -> None:
    """All on one draw, which costs as much as each of them."""
    assert_arguments_are_left_alone(step)
    assert_precision_is_kept(step)
    if taken(step.primitive):
        assert_forward(step)
    assert_slopes(step)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(examples, max_examples=15)
@given(data=st.data())
def test_the_forward_is_that_of_torch_and_the_vjp_its_slope(kind: type[Primitive], data: st.DataObject) -> None:
    """And both leave arguments and precision alone."""
    assert_formulas(data.draw(steps(kind)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(examples, max_examples=60)
@given(data=st.data())
def test_so_they_are_on_more_examples(kind: type[Primitive], data: st.DataObject) -> None:
    assert_formulas(data.draw(steps(kind)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if issubclass(kind, Layer)], ids=lambda kind: kind.__name__)
@settings(examples, max_examples=10)
@given(data=st.data())
def test_so_they_are_in_eval_mode(kind: type[Layer], data: st.DataObject) -> None:
    step = data.draw(steps(kind))
    assert isinstance(step.primitive, Layer)
    evaluated = step.primitive.evaluated()
    updated = {**step.parameters, **step.primitive.updated(step.inputs, step.parameters)}
    if taken(step.primitive):
        outputs = evaluated.forward(step.inputs, updated)
        theirs = applied(Step(step.primitive, step.inputs, updated, ()), training=False)[1]
        assert_like(step.primitive.result(outputs), theirs)
    if evaluated != step.primitive:
        assert_slopes(with_cotangents(evaluated, step.inputs, updated, 0))


complex_ones = pytest.mark.parametrize(
    "kind",
    [kind for kind in KINDS if kind.complex_since is not Drawn.complex_since],
    ids=lambda kind: kind.__name__,
)


@pytest.mark.slow
@complex_ones
@settings(examples, max_examples=15)
@given(data=st.data())
def test_the_formulas_hold_for_complex_numbers(kind: type[Primitive], data: st.DataObject) -> None:
    step = data.draw(steps(kind, "complex"))
    if step.primitive.complex_since and offered(step.primitive.complex_since) and taken(step.primitive):
        assert_forward(step)
        assert_slopes(step)
