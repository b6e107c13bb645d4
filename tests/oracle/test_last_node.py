"""Is the last Node of each layer and operation the one that it says? Held against torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hookcheck.networks.features import OF_IMAGES
from hookcheck.oracle.tolerance import close, coarsest
from hookcheck.probe.copying import array_of
from hookcheck.releases.numbers import release
from hookcheck.topology.last_node import Form, Release
from hookcheck.topology.last_node import Step as LastStep
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.ops.contraction import Einsum
from hookcheck.topology.primitive import Array, Layer, Op, Primitive
from hookcheck.topology.source import expression
from hookcheck.topology.tree import Ref

from .primitives import Step, constructed, existing, steps
from .test_formulas import complex_ones, offered, taken

NOW = release(torch.__version__)
NOT_KNOWN = (Einsum,)
"""Those that say of their last Node that it is not known: they are not judged by it, and no other may say so."""


Layout = Callable[[torch.Tensor], torch.Tensor]

LAYOUTS: dict[str, Layout] = {
    "contiguous": lambda x: x,
    "turned": lambda x: x.transpose(0, -1).contiguous().transpose(0, -1) if x.ndim else x,
    "strided": lambda x: torch.stack([x, x], -1)[..., 0],
    "channels last": lambda x: x.clone(memory_format=torch.channels_last) if x.ndim == 4 else x,
}
"""How an input may lie in memory: what a step gives need not be contiguous."""


def leaf(array: Array, wanted: bool) -> torch.Tensor:
    return torch.tensor(array, requires_grad=wanted and array.dtype.kind in "fc")


def first_tensor(result: Any) -> torch.Tensor:
    while not isinstance(result, torch.Tensor):
        result = result[0]
    return result


def handed_on(step: Step, laid_out: Layout = LAYOUTS["contiguous"]) -> tuple[Any, ...] | None:
    """What the grad_fn of the first output hands on in torch, of which alone the backward begins; None without one.

    Inputs are given as ``laid_out`` has them; None if torch refuses that layout.
    """
    primitive = step.primitive
    assert isinstance(primitive, (Layer, Op))
    wanted = [i not in primitive.constant for i in range(len(step.inputs))]
    given = [leaf(x, wants) for x, wants in zip(step.inputs, wanted)]
    names: dict[str, Any] = {"nn": torch.nn, "torch": torch}
    names.update((f"x{i}", laid_out(x).clone() if primitive.writes else laid_out(x)) for i, x in enumerate(given))
    refs = tuple(Ref(f"x{i}") for i in range(len(given)))
    if isinstance(primitive, Layer):
        wide = torch.complex128 if any(map(np.iscomplexobj, step.inputs)) else torch.float64
        module = names["module"] = constructed(primitive).to(wide)
        with torch.no_grad():
            for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
                if name in step.parameters:
                    tensor.copy_(torch.tensor(step.parameters[name]))
        args, kwargs = primitive.call(refs)
        text = ", ".join([*map(expression, args), *(f"{key}={expression(value)}" for key, value in kwargs)])
        text = f"module({text})"
    else:
        text = primitive.source(*map(expression, refs))
    seen: list[tuple[Any, ...]] = []
    try:
        first = first_tensor(eval(text, names))
        node = first.grad_fn
        if node is None or primitive.passes or any(first is each for each in names.values()):
            return None
        node.register_hook(lambda grad_inputs, _: seen.append(grad_inputs))
        first.backward(torch.tensor(step.cotangents[0]).to(first.dtype))
    except RuntimeError:
        if laid_out is LAYOUTS["contiguous"]:
            raise
        return None  # not every layer takes every layout
    ((*gradients,),) = seen
    return tuple(gradients)


def forms(step: Step, torch_release: Release) -> tuple[Form, ...]:
    """What it says of itself."""
    primitive, names = step.primitive, tuple(step.primitive.parameters())
    cotangents = (step.cotangents[0], *map(np.zeros_like, step.cotangents[1:]))
    of_inputs, of_parameters = primitive.vjp(step.inputs, step.parameters, cotangents)
    operands = (*step.inputs, *(step.parameters[name] for name in names))
    return primitive.last_node(
        LastStep(
            release=torch_release,
            operands=operands,
            names=names,
            constants={name: array for name, array in step.parameters.items() if name not in names},
            dtypes=tuple({"f": "float64", "c": "complex128"}.get(array.dtype.kind, "int64") for array in operands),
            cotangents=cotangents,
            gradients=(*of_inputs, *(of_parameters[name] for name in names)),
        )
    )


def agrees(theirs: tuple[Any, ...], form: Form, constant: Iterable[int] = (), dtype: str = "float64") -> bool:
    if len(theirs) != len(form):
        return False
    for t, entry in zip(theirs, form):
        none = entry is None or entry.gradient is None or set(entry.leads) <= {*constant}
        if none or t is None:
            if not none or t is not None:
                return False
            continue
        assert entry is not None
        assert entry.gradient is not None
        wide = t.detach().to(torch.complex128 if t.is_complex() else torch.float64)
        if not close(array_of(wide), entry.gradient, dtype, "cpu"):
            return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*existing()], ids=lambda kind: kind.__name__)
@settings(max_examples=25)
@given(data=st.data())
def test_the_last_node_is_that_of_torch(kind: type[Primitive], data: st.DataObject) -> None:
    assert_the_same(data.draw(steps(kind)), data.draw(st.sampled_from([*LAYOUTS]), "layout of the inputs"))


@pytest.mark.slow
@complex_ones
@settings(max_examples=25)
@given(data=st.data())
def test_the_last_node_of_complex_numbers_is_that_of_torch(kind: type[Primitive], data: st.DataObject) -> None:
    step = data.draw(steps(kind, "complex"))
    if step.primitive.complex_since and offered(step.primitive.complex_since):
        assert_the_same(step, "contiguous")


def is_known_wrong(step: Step, layout: str) -> bool:
    """Whether torch is known to read another number than the layout has, on every release since 1.10.

    The backward of batch_norm may read a gradient in another order than it has, where a side of length 1 leaves open
    which order the input's strides are (see ``normalised-images-and-strides`` in the ledger). CTCLoss finds the targets
    of a batch in one row as if they lay side by side (see ``reports/upstream/ctc-loss-of-strided-targets``).
    """
    kind, shape = type(step.primitive).__name__, step.inputs[0].shape
    return (layout == "turned" and kind in OF_IMAGES and 1 in shape) or (
        layout == "strided" and kind == "CTCLoss" and step.inputs[1].ndim == 1
    )


def assert_the_same(step: Step, layout: str) -> None:
    if is_known_wrong(step, layout):
        return
    theirs = handed_on(step, LAYOUTS[layout]) if taken(step.primitive) else None
    if theirs is not None:
        declarations = forms(step, NOW)
        assert bool(declarations) == (type(step.primitive) not in NOT_KNOWN)
        constant = step.primitive.constant if isinstance(step.primitive, (Layer, Op)) else ()
        dtype = coarsest(["float64", step.primitive.casts, step.primitive.precision("cpu")])
        assert not declarations or any(agrees(theirs, form, constant, dtype) for form in declarations), theirs


def test_a_declaration_that_is_wrong_does_not_agree() -> None:
    layer = Linear(2, 1, bias=False)
    step = Step(layer, (np.array([[1.0, 2.0]]),), {"weight": np.array([[5.0, 6.0]])}, (np.ones((1, 1)),))
    theirs = handed_on(step)
    assert theirs is not None
    (ours,) = forms(step, NOW)
    assert agrees(theirs, ours)
    assert not agrees(theirs, ours[::-1])
    assert not agrees(theirs, ours[:1])
    assert not agrees(theirs, Primitive.last_node(layer, _step(step))[0])


def _step(step: Step) -> LastStep:
    (dx,), of_parameters = step.primitive.vjp(step.inputs, step.parameters, step.cotangents)
    operands = (*step.inputs, *step.parameters.values())
    gradients = (dx, *of_parameters.values())
    return LastStep(NOW, operands, tuple(step.parameters), {}, ("float64",) * 2, step.cotangents, gradients)
