"""Linear maps that treat each axis on its own: one matrix for each axis forwards, their transposes on the way back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import prod

import numpy as np

from hookcheck.topology.primitive import Array, Arrays, Shape, SingleStep


def along(x: Array, matrices: Sequence[Array]) -> Array:
    """``x`` with its last axes mapped, each by its matrix (out, in); leading axes stay.

    As matrix products over three axes: the fastest for small ones.
    """
    for axis, matrix in enumerate(matrices, x.ndim - len(matrices)):
        before, after = x.shape[:axis], x.shape[axis + 1 :]
        x = (matrix.astype(x.dtype, copy=False) @ x.reshape(prod(before), -1, prod(after))).reshape(
            *before, len(matrix), *after
        )
    return x


def selection(indices: Array, side: int) -> Array:
    """The matrix (*indices.shape, side) that picks these places of an axis; zero rows for indices beyond it."""
    return (indices[..., None] == np.arange(side)).astype(float)


class Separable(SingleStep):
    """A layer without parameters on (N, C, ...): ``y = (A₁ ⊗ A₂ ⊗ …) x`` and ``dx = (A₁ᵀ ⊗ A₂ᵀ ⊗ …) v``."""

    @abstractmethod
    def matrices(self, sides: Shape) -> Sequence[Array]:
        """The matrix of each axis after (N, C), for an input with these sides."""

    def forward(self, inputs: Arrays, parameters: dict[str, Array]) -> Arrays:
        """`mapped`. There is no method ``value``, since some paddings have a setting of that name."""
        return (self.mapped(*inputs),)

    def mapped(self, x: Array) -> Array:
        """``x`` (N, C, ...) to ``y`` (N, C, ...), each further axis mapped by its matrix."""
        return along(x, self.matrices(x.shape[2:]))

    def pull(self, v: Array, x: Array) -> Array:
        """``dx`` of ``x``'s shape."""
        return along(v, [matrix.T for matrix in self.matrices(x.shape[2:])])
