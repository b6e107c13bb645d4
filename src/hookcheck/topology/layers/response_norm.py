"""LocalResponseNorm, CrossMapLRN2d: each channel divided by a power of the squares of the channels around it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.primitive import Array, Layer, Operand, Shape, SingleStep

ALPHA, BETA, K = (st.sampled_from(values) for values in ([1e-4, 0.5, 1.0], [0.75, 0.5, 1.0], [1.0, 2.0, 0.5]))


class _ResponseNorm(SingleStep):
    size: int
    alpha: float
    beta: float
    k: float

    def source(self) -> str:
        """The constructor call, settings at their default left out."""
        return constructor(self)

    def value(self, x: Array) -> Array:
        """``x`` (N, C, ...) to ``x d^−β`` of the same shape."""
        return x * self._divisor(x) ** -self.beta

    def pull(self, v: Array, x: Array) -> Array:
        """``dx`` of ``x``'s shape."""
        d = self._divisor(x)
        heard = self._summed(v * x * d ** (-self.beta - 1), self._window(x.shape[1]).T)
        return v * d**-self.beta - 2 * self.alpha * self.beta / self.size * x * heard

    def _divisor(self, x: Array) -> Array:
        return self.k + self.alpha / self.size * self._summed(x * x, self._window(x.shape[1]))

    def _window(self, channels: int) -> Array:
        """(C, C): 1 where the channel of the column is in the window of that of the row."""
        ahead = np.arange(channels) - np.arange(channels)[:, None]
        return ((-(self.size // 2) <= ahead) & (ahead <= (self.size - 1) // 2)).astype(np.int8)

    @staticmethod
    def _summed(x: Array, window: Array) -> Array:
        return (window @ x.reshape(*x.shape[:2], -1)).reshape(x.shape)


@dataclass(frozen=True)
class LocalResponseNorm(_ResponseNorm):
    """``nn.LocalResponseNorm``: ``x`` (N, C, ...) with at least one further axis to ``y`` of the same shape.

    ``y[c] = x[c] d[c]^−β`` with ``d[c] = k + α / size · Σ x[c']²`` over the ``size`` channels from ``c − ⌊size / 2⌋``
    on, as far as there are any. With cotangent ``v``, the sum over those ``c'`` whose window holds ``c``:
    ``dx[c] = v[c] d[c]^−β − 2 α β / size · x[c] Σ v[c'] x[c'] d[c']^(−β − 1)``.
    Source: the documentation of ``torch.nn.LocalResponseNorm``; Krizhevsky, Sutskever and Hinton, 'ImageNet
    Classification with Deep Convolutional Neural Networks' (2012), section 3.3.
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, C, ...) with at least one further axis."""
        return len(shape) > 2 and all(shape)

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A window of one to four channels, which may be more than there are."""
        return cls(draw(st.integers(1, 4)), draw(ALPHA), draw(BETA), draw(K)), (Operand(shape),)

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """The quotient of ``x`` and ``d^β``, both of which lead to ``x``."""
        (x,), v = step.inputs, step.v
        power = self._divisor(x) ** self.beta
        return ((step.inner(v / power), step.inner(-v * x / power**2)),)


@dataclass(frozen=True)
class CrossMapLRN2d(_ResponseNorm):
    """``nn.CrossMapLRN2d``: ``x`` (N, C, H, W) to ``y`` of the same shape, with the formulas of `LocalResponseNorm`.

    torch does not document it. In 2.13 the first channel never leaves the window again, and the backward is that of the
    forward only if windows are wide. Hence only sizes are drawn for which both follow the formulas: odd ones, so that
    there is a middle, and wide enough to hold all channels on either side of it twice. Complex tensors run, but its
    backward, written in Python, conjugates nothing: what it gives them is no gradient of theirs.
    Source: Krizhevsky, Sutskever and Hinton (2012), section 3.3.
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, C, H, W)."""
        return len(shape) == 4 and all(shape)

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A window that reaches twice as far as there are channels, to either side."""
        size = 4 * shape[1] + 1 + 2 * draw(st.integers(0, 1))
        return cls(size, draw(ALPHA), draw(BETA), draw(K)), (Operand(shape),)
