"""Which tensors share memory, and what does writing to one of them in place do to the others?

Autograd keeps a base and its views together: what is written to one is seen in all, and the gradient follows. What it
does not see, a write under ``no_grad`` or to a detached tensor, changes the numbers and leaves the graph as it is.
Sources: PyTorch's notes on autograd, 'In-place operations with autograd' and 'Locally disabling gradient computation';
the documentation of ``torch.Tensor.detach``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hookcheck.oracle.graph import Tensor
from hookcheck.topology.primitive import Array, Gradients, Primitive


class Stepping(Protocol):
    """What takes a step of the graph: the tracer, with the grad modes that it is in, the innermost last."""

    modes: list[str]

    def step(
        self,
        primitive: Primitive,
        inputs: tuple[Tensor, ...],
        parameters: dict[str, Tensor],
        buffers: Mapping[str, Array],
    ) -> tuple[Tensor, ...]:
        """The outputs of one step."""


@dataclass(frozen=True, eq=False)
class Pasted(Primitive):
    """The base with ``part`` in its ``positions``: ``d base = v`` elsewhere and 0 there, ``d part = v`` there."""

    positions: Array

    def value(self, base: Array, part: Array) -> Array:
        """The base's shape."""
        whole = base.astype(np.result_type(base, part)).reshape(-1)
        whole[self.positions] = part
        return whole.reshape(base.shape)

    def pull(self, v: Array, base: Array, part: Array) -> Gradients:
        """``v`` with holes, and what was in the holes."""
        flat = v.reshape(-1).copy()
        held = flat[self.positions]
        flat[self.positions] = 0
        return flat.reshape(base.shape), held


@dataclass(frozen=True, eq=False)
class Taken(Primitive):
    """What lies in ``positions`` of the base; the gradient goes back there."""

    positions: Array

    def value(self, base: Array) -> Array:
        """The shape of ``positions``."""
        return base.reshape(-1)[self.positions]

    def pull(self, v: Array, base: Array) -> Array:
        """``v`` in its positions, 0 elsewhere."""
        whole = np.zeros(base.size, v.dtype)
        np.add.at(whole, self.positions, v)
        return whole.reshape(base.shape)


def _positions(tensor: Tensor) -> Array:
    """Where in its base a tensor lies."""
    if tensor.positions is not None:
        return tensor.positions
    return np.arange(tensor.array.size).reshape(tensor.array.shape)


def viewed(primitive: Primitive, source: Tensor, outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Notes of the outputs of a view whose memory they are."""
    for output, positions in zip(outputs, primitive.forward((_positions(source),), {})):
        aliased(output, source, positions)
        output.bound = source.bound
    return outputs


def aliased(tensor: Tensor, source: Tensor, positions: Array | None) -> None:
    """Notes that ``tensor`` shares the memory of ``source``: those positions of its base, or all of it."""
    tensor.base, tensor.positions = source.base or source, positions
    tensor.base.views.append(tensor)


def followed(tracer: Stepping, target: Tensor) -> bool:
    """Whether autograd follows a write to ``target`` into all that shares its history."""
    base = target.base or target
    return tracer.modes[-1] == "grad" and base.requires_grad == target.requires_grad


def in_base(tracer: Stepping, target: Tensor) -> Tensor:
    """What a write to ``target`` goes on from: of a view what lies there in its base, not what made the view.

    autograd puts the write between the base and what had made that (``CopySlices`` in
    torch/csrc/autograd/functions/tensor.cpp), so that nothing of it reaches the Node that the view had.
    """
    if target.base is None or target.positions is None or not followed(tracer, target):
        return target
    return tracer.step(Taken(target.positions), (_whole(target),), {}, {})[0]


def _whole(target: Tensor) -> Tensor:
    """Where what lies in the base of ``target`` is: what came out of a boundary, where it is all of that base.

    A module that gives all of a tensor is asked for the gradient of what it gave, and a write to a part of that is
    one of those who consume it.
    """
    assert target.base is not None
    bound = target.bound
    return bound if bound is not None and bound.positions is None and bound.newer is None else target.base


def overwritten(tracer: Stepping, target: Tensor, new: Tensor) -> Tensor:
    """Puts ``new`` in the place of ``target``, in its base and in all that shares its memory; gives what it is then.

    In grad mode autograd follows the write into those that share the target's history too. Those that require grad
    where the target does not, or the reverse, have another one, since a ``detach`` or ``no_grad`` came between.
    What comes out of a boundary is `stale` from then on.
    """
    base = target.base or target
    follows = tracer.modes[-1] == "grad"
    if not followed(tracer, target):
        whole = _renumbered(base, Pasted(_positions(target)).value(base.array, new.array))
    else:
        whole = (
            new if target.positions is None else tracer.step(Pasted(target.positions), (_whole(target), new), {}, {})[0]
        )
    base.newer = whole
    taken: dict[int, Tensor] = {}  # what comes out of a boundary is the same view
    for view in [view for view in base.views if view.newer is None]:
        if not follows or len({tensor.requires_grad for tensor in (view, base, target)}) > 1:
            part = Taken(_positions(view)).value(whole.array)
            seen = new if follows and view is target else _renumbered(view, part)
        elif view.positions is None:
            seen = _again(whole)
        else:
            if id(view.positions) not in taken:
                (taken[id(view.positions)],) = tracer.step(Taken(view.positions), (whole,), {}, {})
            seen = _again(taken[id(view.positions)])
        aliased(seen, whole, view.positions)
        seen.bound, seen.stale = view.bound, view.bound is not None
        view.newer = seen
    return target.newer or whole


def _again(tensor: Tensor) -> Tensor:
    """The tensor once more, as another one that shares its memory has it."""
    again = Tensor(tensor.array, tensor.requires_grad, tensor.dtype, tensor.node, tensor.slot)
    again.wraps = tensor.wraps
    return again


def _renumbered(tensor: Tensor, array: Array) -> Tensor:
    """The tensor with other numbers, which its history knows nothing of."""
    seen = Tensor(array, tensor.requires_grad, tensor.dtype, tensor.node, tensor.slot, tensor.name)
    seen.unfollowed = tensor.unfollowed + 1
    return seen
