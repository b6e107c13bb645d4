"""When does a run say nothing? Where a number on the way is too large for its dtype: what is infinite or NaN behind it,
and what zero, is each kernel's affair. And where a variance is lost in it. Where a number lies on a kink at which
releases differ, what is None and what is called still counts, and no number does."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import numpy as np

from hookcheck.oracle.graph import Node, Trace
from hookcheck.oracle.sweep import Sweep, materialized, vjp
from hookcheck.topology.last_node import Release
from hookcheck.topology.layers.normalisation import GroupNorm, LayerNorm
from hookcheck.topology.primitive import Array

LARGEST = {"float64": 2.0**511, "float32": 2.0**63, "float16": 2.0**15, "bfloat16": 2.0**63}
"""Beyond which numbers a step may overflow on its way: the root of the largest that the wide types hold, since steps
take squares. The 16-bit types are worked out in float32 and overflow where they are rounded: float16 at 2**16."""

EXPONENTIAL = {"float64": 708.0, "float32": 87.0, "float16": 87.0, "bfloat16": 87.0}
"""Beyond which the exponential of a number overflows. Where a gradient is differentiated, torch takes exponentials of
what a step is given that its first backward avoids: of Mish they give NaN."""

CANCELS = 2.0**8
"""How many times as large as a variance the mean of squares may be that it is the rest of: 16 of 24 bits are kept."""

SINGLE = {"f": np.float32, "c": np.complex64}
"""In what a step is worked out, by the kind of its operands, wherever that is not float64."""


@np.errstate(all="ignore")
def overflows(trace: Trace, sweeps: Iterable[Sweep], dtype: str) -> bool:
    """Whether any number of a network of that (coarsest) dtype, forward or backward, is beyond the `LARGEST`, or is in
    float32 within a step: ``log(1 + exp(x))`` is a small number, and ``exp(x)`` none that can be held."""
    sweeps = tuple(sweeps)
    calls = (t.array for call in trace.calls for t in (*call.args, *call.outputs) if t is not None)
    steps = (t.array for node in trace.nodes for t in node.inputs)
    gradients = (g for swept in sweeps for part in swept.passed.values() for g in part if g is not None)
    arrays = (a for a in chain(calls, steps, gradients) if a.dtype.kind in SINGLE and a.size)
    most = EXPONENTIAL[dtype] if trace.doubled else LARGEST[dtype]
    if not all(np.abs(array).max() <= most for array in arrays):  # NaN cannot be held either
        return True
    return dtype != "float64" and any(_within(node, sweeps) for node in trace.nodes if node.primitive is not None)


def cancels(trace: Trace, dtype: str, release: Release) -> bool:
    """Whether the variance of a LayerNorm or GroupNorm is lost in float32, where it is ``mean(x²) − mean(x)²``: kernels
    work it out so up to 1.9."""
    return dtype == "float32" and release < (1, 10) and any(map(_loses_its_variance, trace.nodes))


def disputed(trace: Trace, sweeps: Iterable[Sweep]) -> bool:
    """Whether a gradient comes through a step at whose numbers releases differ in it."""
    ran = {index for swept in sweeps for index in swept.received}
    return any(
        node.primitive.disputed(*(t.array for t in node.inputs))
        for node in trace.nodes
        if node.primitive is not None and node.index in ran
    )


def _loses_its_variance(node: Node) -> bool:
    norm = node.primitive
    if not isinstance(norm, (GroupNorm, LayerNorm)):
        return False
    x = node.inputs[0].array
    shape = (len(x), norm.num_groups) if isinstance(norm, GroupNorm) else x.shape[: -len(norm.normalized_shape)]
    alike = x.reshape((*shape, -1))
    return bool(np.any(abs(alike * alike).mean(-1) > CANCELS * (alike.var(-1) + norm.eps)))


def _within(node: Node, sweeps: tuple[Sweep, ...]) -> bool:
    """Whether a step of finite numbers gives others in float32."""
    assert node.primitive is not None
    operands = tuple(_single(t.array) for t in node.inputs)
    count = len(operands) - len(node.parameters)
    parameters = {**dict(zip(node.parameters, operands[count:])), **node.buffers}
    results = list(node.primitive.forward(operands[:count], parameters))
    for received in (swept.received[node.index] for swept in sweeps if node.index in swept.received):
        results += [g for g in vjp(node, operands, tuple(map(_single, materialized(node, received)))) if g is not None]
    return not all(np.isfinite(result).all() for result in results)


def _single(array: Array) -> Array:
    return array.astype(SINGLE[array.dtype.kind]) if array.dtype.kind in SINGLE else array
