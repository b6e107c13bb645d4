"""Which gradients does one backward pass yield? One reverse sweep over the traced graph.

What is absent (see `hookcheck.oracle.gradient`) stays absent along ordinary steps. A boundary joins its tensors: it
runs if any of them has a gradient, and fills the others with zeros, as ``torch.autograd.Function`` documents
(materialized gradients). Since 2.3 that of a module's outputs hands on none for those (pytorch#116454): its hook gives
back what it was called with.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hookcheck.hooks.acts import Acts, factor
from hookcheck.oracle.gradient import Gradient
from hookcheck.oracle.graph import Key, Node, Pass, Tensor, Trace, origin
from hookcheck.oracle.rounding import Noise
from hookcheck.topology.primitive import Array


@dataclass
class Sweep:
    """What one backward pass did.

    For each node that ran, by index: ``received``, the gradient of each of its outputs; ``passed``, that of each of its
    inputs; ``earlier``, the nodes (as a bit mask) that must have run before it. ``asked`` holds the gradients that the
    pass was asked for: those of leaves and, where they are named, of intermediates. Of a pass that was asked for some
    alone, ``wanted`` are those and ``needed`` the nodes from which one of them can be reached.
    """

    received: dict[int, tuple[Gradient, ...]] = field(default_factory=dict)
    passed: dict[int, tuple[Gradient, ...]] = field(default_factory=dict)
    earlier: dict[int, int] = field(default_factory=dict)
    asked: dict[Key, Array] = field(default_factory=dict)
    wanted: frozenset[Key] | None = None
    needed: set[int] | None = None


@np.errstate(all="ignore")  # as in forward
def sweep(trace: Trace, backward: Pass, joined: bool, filling: bool = True) -> Sweep:
    """Runs one backward pass; ``joined`` says whether the boundaries are there or transparent (a run without hooks),
    and ``filling`` whether those of outputs fill in zeros."""
    pending: dict[int, list[Gradient]] = {}
    masks: dict[int, int] = {}
    asked = {key: key if joined else _source(trace, key) for key in backward.wanted or ()}
    wanted = None if backward.wanted is None else frozenset(asked.values())
    needed = None if wanted is None else _leading_to(trace, wanted, joined, backward.accumulates)
    result = Sweep(wanted=wanted, needed=needed)

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
        passed = handed_on(node, received, joined and (filling or node.exit is not None))
        if node.primitive is None and joined and _acting(trace.acts, node, result):
            passed = tuple(g if g is None else factor(trace.acts, i) * g for i, g in zip(node.positions, passed))
        if trace.noise is not None and node.primitive is not None:
            passed = _noisy(trace.noise, node, received)
        result.received[node.index], result.passed[node.index] = received, passed
        result.earlier[node.index] = masks[node.index]
        for tensor, gradient in zip(node.inputs, passed):
            give(tensor, gradient, masks[node.index] | 1 << node.index)
    for key, source in asked.items():
        gradient = pending.get(source[0], [None] * (source[1] + 1))[source[1]] if isinstance(source, tuple) else None
        if gradient is None and isinstance(source, str):
            gradient = result.asked.get(source)
        if gradient is not None:
            result.asked[key] = gradient
    return result


def _acting(acts: Acts, boundary: Node, result: Sweep) -> bool:
    """Whether a hook changes what comes through a boundary.

    Where no output has a gradient no release calls the hook on inputs (clause BW-02 says so), and so it does not act.
    """
    return acts.grad_output if boundary.exit is None else acts.grad_input and boundary.exit in result.received


def _source(trace: Trace, key: Key) -> Key:
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
    moved = tuple(g if g is None else noise.moved(g, exact) for g in received)
    passed = handed_on(node, moved, joined=True)
    operands = tuple(t.array for t in node.inputs)
    count = len(operands)
    within = noise.cancelled(
        lambda given: vjp(node, given[:count], given[count:]), (*operands, *materialized(node, moved)), moved
    )
    return tuple(g if g is None else noise.moved(g, exact, size) for g, size in zip(passed, within))


def handed_on(node: Node, received: tuple[Gradient, ...], joined: bool = True) -> tuple[Gradient, ...]:
    """The gradients of a node's inputs, given those of its outputs."""
    if node.primitive is None and not joined:
        return received
    cotangents = materialized(node, received)
    if node.primitive is None:
        return cotangents
    if node.last is not None and all(map(_same, received, node.last[0])):
        return node.last[1]
    gradients = vjp(node, tuple(t.array for t in node.inputs), cotangents)
    reached = node.primitive.reaches(tuple(g is not None for g in received)) or ()
    passed = tuple(g if i >= len(reached) or reached[i] else None for i, g in enumerate(gradients))
    node.last = received, passed
    return passed


def _same(one: Gradient, other: Gradient) -> bool:
    """Whether both are the same bit by bit."""
    if one is None or other is None or one is other:
        return one is other
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


def materialized(node: Node, gradients: tuple[Gradient, ...]) -> tuple[Array, ...]:
    """The gradients of a node's outputs with zeros for those that are absent."""
    return tuple(np.zeros(shape) if g is None else g for shape, g in zip(node.shapes, gradients))


def vjp(node: Node, operands: tuple[Array, ...], cotangents: tuple[Array, ...]) -> tuple[Gradient, ...]:
    """The gradients of a step's operands, parameters last, by its hand-written VJP."""
    assert node.primitive is not None
    count = len(operands) - len(node.parameters)
    parameters = {**dict(zip(node.parameters, operands[count:])), **node.buffers}
    gradients, of_parameters = node.primitive.vjp(operands[:count], parameters, cotangents)
    return (*gradients, *(of_parameters[name] for name in node.parameters))


def _leading_to(trace: Trace, wanted: frozenset[Key], joined: bool, accumulates: bool) -> set[int]:
    """The nodes from which a wanted gradient can be reached.

    What comes out of a boundary that joins its tensors leads to all that goes in; of a transparent one, to its own. To
    leave a gradient in ``.grad`` of an intermediate, the node that made it runs, as that of a leaf does.
    """
    leading = {key[0] for key in wanted if accumulates and isinstance(key, tuple)}

    def leads(tensor: Tensor) -> bool:
        tensor = tensor if joined else origin(tensor)
        if tensor.node is None:
            return tensor.requires_grad and tensor.name in wanted
        index = tensor.node.index
        return tensor.requires_grad and (index in leading or (index, tensor.slot) in wanted)

    for node in trace.nodes:
        if any(map(leads, node.inputs)):
            leading.add(node.index)
    return leading
