"""What does the last Node of a step hand on? The gradients that a legacy hook is given as ``grad_input``.

A legacy hook is a hook on one Node of autograd, the grad_fn of a module's first output. torch makes one Node of a layer
or an operation, or several; what the last of them hands on are gradients of *its* inputs, in its own order: of the
step's operands, or of what is between them and the output. Which Node that is, each layer and operation says in
`Primitive.last_node`, for each release where it differs. A Node has an entry for every argument that torch has a
derivative for, with nothing in it where the argument was left out or is a plain number, and none for indices and masks.

Sources: torch's ``tools/autograd/derivatives.yaml`` for the arguments and their order; ``aten/src/ATen/native`` and
``torch/nn/functional.py`` for the Nodes that a layer is made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from hookcheck.topology.primitive import Array

Release = tuple[int, int]
"""Major and minor number of a release of torch."""

LATEST: Release = (999, 0)
"""Newer than every release."""


@dataclass(frozen=True, eq=False)
class NodeGradient:
    """A gradient that a Node hands on, and the places of the operands that it is for or leads to.

    Where none of those wants a gradient there is None instead. ``seen`` says that the Node is that of a view of what
    torch makes inside of the step, so that a later write in place is one to that: ``whole`` if it is the same numbers
    in the shape of ``gradient``, or ``otherwise``.
    """

    gradient: Array | None
    leads: tuple[int, ...]
    seen: str = ""


Form = tuple[Optional[NodeGradient], ...]
"""What a Node hands on, in order; None for an input that is no tensor."""


@dataclass(frozen=True, eq=False)
class Step:
    """A step as one backward pass met it: all that may tell which Node is its last, and what that hands on.

    ``operands`` are the values of its inputs and then of its parameters, which ``names`` names; ``dtypes`` and
    ``gradients`` are theirs. ``constants`` are its buffers. ``cotangents`` has the
    gradient of each output, zeros for one that has none, and ``slot`` says which output it is about. ``contiguous``
    says that the first input is known to be.
    """

    release: Release
    operands: tuple[Array, ...]
    names: tuple[str, ...]
    constants: Mapping[str, Array]
    dtypes: tuple[str, ...]
    cotangents: tuple[Array, ...]
    gradients: tuple[Array | None, ...]
    slot: int = 0
    contiguous: bool = False

    @property
    def v(self) -> Array:
        """The gradient of the output that it is about."""
        return self.cotangents[self.slot]

    @property
    def inputs(self) -> tuple[Array, ...]:
        """The values of the inputs."""
        return self.operands[: len(self.operands) - len(self.names)]

    @property
    def parameters(self) -> dict[str, Array]:
        """The values of parameters and buffers, as formulas take them."""
        return {**dict(zip(self.names, self.operands[len(self.inputs) :])), **self.constants}

    @property
    def floating(self) -> tuple[int, ...]:
        """The places of the operands that can have a gradient."""
        return tuple(place for place, array in enumerate(self.operands) if array.dtype.kind in "fc")

    def place(self, key: int | str) -> int:
        """The place of an operand: its number among the inputs, or the name of a parameter."""
        return len(self.inputs) + self.names.index(key) if isinstance(key, str) else key

    def of(self, key: int | str) -> NodeGradient | None:
        """The gradient of an operand; None for a parameter that there is not."""
        if isinstance(key, str) and key not in self.names:
            return None
        place = self.place(key)
        return NodeGradient(self.gradients[place], (place,))

    def turned(self, key: int | str) -> NodeGradient:
        """The gradient of an operand of two dimensions, transposed."""
        entry = self.of(key)
        assert entry is not None
        return NodeGradient(None if entry.gradient is None else entry.gradient.T, entry.leads)

    def inner(self, gradient: Array, *keys: int | str) -> NodeGradient:
        """The gradient of what leads to the operands ``keys``, or to all if there are none."""
        return NodeGradient(gradient, tuple(map(self.place, keys)) or self.floating)

    @property
    def each(self) -> Form:
        """The gradients of all operands that can have one, in order."""
        return tuple(map(self.of, self.floating))

    def alone(self, gradient: Array) -> tuple[Form, ...]:
        """One Node with one input."""
        return ((self.inner(gradient),),)

    def view(self, gradient: Array, seen: str = "whole") -> tuple[Form, ...]:
        """One Node that is a view's, with its one input."""
        return ((NodeGradient(gradient, self.floating, seen),),)
