"""Which gradients does one backward pass yield? One reverse sweep over the traced graph.

A gradient is in one of three states: *absent* (None), *zero*, or *a value*; the last two are arrays. What is absent
stays absent along ordinary steps. A boundary joins its tensors: it runs if any of them has a gradient, and fills the
others with zeros, as ``torch.autograd.Function`` documents (materialized gradients).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

import numpy as np

from hookcheck.oracle.trace import Node, Pass, Tensor, Trace
from hookcheck.topology.model import Array

Gradient = Optional[Array]


@dataclass
class Sweep:
    """What one backward pass did.

    For each node that ran, by index: ``received``, the gradient of each of its outputs; ``passed``, that of each of its
    inputs; ``earlier``, the nodes (as a bit mask) that must have run before it. ``leaves`` holds those of the leaves.
    """

    received: dict[int, tuple[Gradient, ...]] = field(default_factory=dict)
    passed: dict[int, tuple[Gradient, ...]] = field(default_factory=dict)
    earlier: dict[int, int] = field(default_factory=dict)
    leaves: dict[str, Array] = field(default_factory=dict)


def sweep(trace: Trace, backward: Pass, joined: bool) -> Sweep:
    """Runs one backward pass; ``joined`` says whether the boundaries are there or transparent (a run without hooks)."""
    result = Sweep()
    pending: dict[int, list[Gradient]] = {}
    masks: dict[int, int] = {}
    needed = _leading_to(trace, backward.wanted)

    def give(tensor: Tensor, gradient: Gradient, mask: int) -> None:
        if not tensor.requires_grad:
            return
        if tensor.node is None:
            if gradient is not None and (backward.wanted is None or tensor.name in backward.wanted):
                known = result.leaves.get(tensor.name)
                result.leaves[tensor.name] = gradient if known is None else known + gradient
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
        passed = _through(node, received, joined)
        result.received[node.index], result.passed[node.index] = received, passed
        result.earlier[node.index] = masks[node.index]
        for tensor, gradient in zip(node.inputs, passed):
            give(tensor, gradient, masks[node.index] | 1 << node.index)
    return result


def _through(node: Node, received: tuple[Gradient, ...], joined: bool) -> tuple[Gradient, ...]:
    """The gradients of a node's inputs, given those of its outputs."""
    if node.primitive is None and not joined:
        return received
    cotangents = tuple(np.zeros(shape) if g is None else g for shape, g in zip(node.shapes, received))
    if node.primitive is None:
        return cotangents
    count = len(node.inputs) - len(node.parameters)
    parameters = {name: t.array for name, t in zip(node.parameters, node.inputs[count:])}
    gradients, of_parameters = node.primitive.vjp(tuple(t.array for t in node.inputs[:count]), parameters, cotangents)
    return (*gradients, *(of_parameters[name] for name in node.parameters))


def _leading_to(trace: Trace, wanted: frozenset[str] | None) -> set[int] | None:
    """The nodes from which a wanted leaf can be reached, or None where all leaves are wanted."""
    if wanted is None:
        return None
    leading: set[int] = set()
    for node in trace.nodes:
        sources = (t for t in node.inputs if t.requires_grad)
        if any(t.name in wanted if t.node is None else t.node.index in leading for t in sources):
            leading.add(node.index)
    return leading
