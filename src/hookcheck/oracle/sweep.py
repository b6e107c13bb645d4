"""Which gradients does one backward pass yield? One reverse sweep over the traced graph.

A gradient is in one of three states: *absent* (None), *zero*, or *a value*; the last two are arrays. What is absent
stays absent along ordinary steps. A boundary joins its tensors: it runs if any of them has a gradient, and fills the
others with zeros, as ``torch.autograd.Function`` documents (materialized gradients).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np

from hookcheck.oracle.graph import Key, Node, Pass, Tensor, Trace
from hookcheck.oracle.rounding import Noise, cancelled
from hookcheck.topology.primitive import Array

Gradient = Optional[Array]


@dataclass
class Sweep:
    """What one backward pass did.

    For each node that ran, by index: ``received``, the gradient of each of its outputs; ``passed``, that of each of its
    inputs; ``earlier``, the nodes (as a bit mask) that must have run before it. ``asked`` holds the gradients that the
    pass was asked for: those of leaves and, where they are named, of intermediates.
    """

    received: dict[int, tuple[Gradient, ...]] = field(default_factory=dict)
    passed: dict[int, tuple[Gradient, ...]] = field(default_factory=dict)
    earlier: dict[int, int] = field(default_factory=dict)
    asked: dict[Key, Array] = field(default_factory=dict)


def sweep(trace: Trace, backward: Pass, joined: bool) -> Sweep:
    """Runs one backward pass; ``joined`` says whether the boundaries are there or transparent (a run without hooks)."""
    result = Sweep()
    pending: dict[int, list[Gradient]] = {}
    masks: dict[int, int] = {}
    asked = {key: key if joined else _made(trace, key) for key in backward.wanted or ()}
    wanted = None if backward.wanted is None else frozenset(asked.values())
    needed = _leading_to(trace, wanted)

    def give(tensor: Tensor, gradient: Gradient, mask: int) -> None:
        if not tensor.requires_grad:
            return
        if gradient is not None and gradient.dtype.kind == "c" and tensor.array.dtype.kind == "f":
            gradient = gradient.real
        if tensor.node is None:
            if gradient is not None and (wanted is None or tensor.name in wanted):
                known = result.asked.get(tensor.name)
                result.asked[tensor.name] = gradient if known is None else known + gradient
            return
        index = tensor.node.index
        masks[index] = masks.get(index, 0) | mask
        if gradient is not None:
            slots = pending.setdefault(index, [None] * len(tensor.node.shapes))
            known = slots[tensor.slot]
            slots[tensor.slot] = gradient if known is None else known + gradient

    for root, cotangent in zip(backward.roots, backward.cotangents):
        give(root, cotangent, 0)
    for node in reversed(trace.nodes):
        if node.index not in pending or (needed is not None and node.index not in needed):
            continue
        received = tuple(pending[node.index])
        passed = _handed_on(node, received, joined)
        # Where no output has a gradient no release calls the hook (clause BW-02 says so), and so it does not act.
        if node.factors and joined and (node.exit is None or node.exit in result.received):
            passed = tuple(g if g is None else f * g for f, g in zip(node.factors, passed))
        if trace.noise is not None and node.primitive is not None:
            passed = _noisy(trace.noise, node, received)
        result.received[node.index], result.passed[node.index] = received, passed
        result.earlier[node.index] = masks[node.index]
        for tensor, gradient in zip(node.inputs, passed):
            give(tensor, gradient, masks[node.index] | 1 << node.index)
    for key, made in asked.items():
        gradient = pending.get(made[0], [None] * (made[1] + 1))[made[1]] if isinstance(made, tuple) else None
        if gradient is None and isinstance(made, str):
            gradient = result.asked.get(made)
        if gradient is not None:
            result.asked[key] = gradient
    return result


def _made(trace: Trace, key: Key) -> Key:
    """What a gradient is asked of where boundaries are transparent: the tensor that the step before them made."""
    while isinstance(key, tuple) and trace.nodes[key[0]].primitive is None:
        tensor = trace.nodes[key[0]].inputs[key[1]]
        key = tensor.name if tensor.node is None else (tensor.node.index, tensor.slot)
    return key


def _noisy(noise: Noise, node: Node, received: tuple[Gradient, ...]) -> tuple[Gradient, ...]:
    """What a step hands on, with noise on what it receives, for it can cancel, and on what it passes on.

    A boundary computes nothing, and so rounds nothing.
    """
    assert node.primitive is not None
    exact = node.primitive.exact
    moved = tuple(g if g is None else noise(g, exact, 0.0) for g in received)
    passed = _handed_on(node, moved, joined=True)
    single = _handed_on(node, moved, joined=True, dtype=np.dtype(np.float32))
    largest = max((float(np.abs(g).max(initial=0)) for g in moved if g is not None), default=0.0)
    return tuple(
        g if g is None or s is None else noise(g, exact, cancelled(g, s, largest)) for g, s in zip(passed, single)
    )


def _handed_on(
    node: Node, received: tuple[Gradient, ...], joined: bool, dtype: np.dtype[Any] | None = None
) -> tuple[Gradient, ...]:
    """The gradients of a node's inputs, given those of its outputs; worked out in ``dtype`` if one is named."""
    if node.primitive is None and not joined:
        return received
    cotangents = materialized(node, received)
    if node.primitive is None:
        return cotangents
    if dtype is None and node.last is not None and all(map(_same, received, node.last[0])):
        return node.last[1]
    operands = tuple(t.array for t in node.inputs)
    if dtype is not None:
        operands, cotangents = _rounded(operands, dtype), _rounded(cotangents, dtype)
    gradients = through(node, operands, cotangents)
    reached = node.primitive.reaches(tuple(g is not None for g in received)) or ()
    passed = tuple(g if i >= len(reached) or reached[i] else None for i, g in enumerate(gradients))
    if dtype is None:
        node.last = received, passed
    return passed


def _same(one: Gradient, other: Gradient) -> bool:
    """Whether both are the same bit by bit."""
    if one is None or other is None or one is other:
        return one is other
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


def _rounded(arrays: tuple[Array, ...], dtype: np.dtype[Any]) -> tuple[Array, ...]:
    """The floating ones in another dtype."""
    return tuple(array.astype(dtype) if array.dtype.kind == "f" else array for array in arrays)


def materialized(node: Node, gradients: tuple[Gradient, ...]) -> tuple[Array, ...]:
    """The gradients of a node's outputs with zeros for those that are absent."""
    return tuple(np.zeros(shape) if g is None else g for shape, g in zip(node.shapes, gradients))


def through(node: Node, operands: tuple[Array, ...], cotangents: tuple[Array, ...]) -> tuple[Gradient, ...]:
    """The gradients of a step's operands, parameters last, by its hand-written VJP."""
    assert node.primitive is not None
    count = len(operands) - len(node.parameters)
    parameters = {**dict(zip(node.parameters, operands[count:])), **node.buffers}
    gradients, of_parameters = node.primitive.vjp(operands[:count], parameters, cotangents)
    return (*gradients, *(of_parameters[name] for name in node.parameters))


def _leading_to(trace: Trace, wanted: frozenset[Key] | None) -> set[int] | None:
    """The nodes from which a wanted gradient can be reached, or None where those of all leaves are wanted."""
    if wanted is None:
        return None
    leading: set[int] = set()
    for node in trace.nodes:
        sources = (t for t in node.inputs if t.requires_grad)
        if any(
            t.name in wanted if t.node is None else t.node.index in leading or (t.node.index, t.slot) in wanted
            for t in sources
        ):
            leading.add(node.index)
    return leading
