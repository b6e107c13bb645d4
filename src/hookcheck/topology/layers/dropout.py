"""Dropouts whose mask is known beforehand: in training all is kept (p = 0) or all is dropped (p = 1).

With p = 0, and in eval mode with any p, torch gives back the very tensor that it was given, the in-place forms too.
With p = 1 it multiplies by zero. What a p between them keeps in training is random, so no formula gives it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hookcheck.topology.layers.identity import Identity
from hookcheck.topology.layers.unary import Unary, drawn
from hookcheck.topology.primitive import Array, Primitive, Shape


class _Dropout(Unary):
    dimensions: ClassVar[int | None] = None
    p: float

    @property
    def complex_since(self) -> str:
        """All that is done is a product with a scalar."""
        return "1.9"

    @property
    def passes(self) -> bool:
        """Whether nothing is ever dropped."""
        return self.p == 0

    @property
    def writes(self) -> bool:
        """Whether ``inplace`` is set and there is something to write."""
        return super().writes and not self.passes

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """The documented batched shape; an empty tensor would be passed on whatever ``p`` is."""
        return all(shape) and cls.dimensions in (None, len(shape))

    def evaluated(self) -> Primitive:
        """The identity."""
        return Identity()

    def value(self, x: Array) -> Array:
        """``(1 − p) x``."""
        return x * self._kept()

    def pullback(self, x: Array, v: Array) -> Array:
        """``(1 − p) v``."""
        return v * self._kept()

    def _kept(self) -> float:
        if self.p not in (0, 1):
            raise ValueError(f"what a dropout with p={self.p} keeps in training is random; take p=0.0 or p=1.0")
        return 1 - self.p


@dataclass(frozen=True)
class Dropout(_Dropout):
    """``nn.Dropout``: ``x`` of any shape; ``y = (1 − p) x`` and ``dx = (1 − p) v`` for p of 0 and 1.

    Source: the documentation of ``torch.nn.Dropout``: elements are zeroed with probability p, the rest is scaled by
    1 / (1 − p).
    """

    p: float = drawn(0.0, 1.0, default=0.5)
    inplace: bool = drawn(False, True, default=False)


@dataclass(frozen=True)
class Dropout1d(_Dropout):
    """``nn.Dropout1d``: ``x`` (N, C, L), whole channels dropped; ``y = (1 − p) x``, ``dx = (1 − p) v``.

    Source: the documentation of ``torch.nn.Dropout1d``.
    """

    dimensions = 3
    p: float = drawn(0.0, 1.0, default=0.5)
    inplace: bool = drawn(False, True, default=False)

    @property
    def since(self) -> str:
        """The release that brought the class."""
        return "1.12"


@dataclass(frozen=True)
class Dropout2d(_Dropout):
    """``nn.Dropout2d``: ``x`` (N, C, H, W), whole channels dropped; ``y = (1 − p) x``, ``dx = (1 − p) v``.

    Source: the documentation of ``torch.nn.Dropout2d``.
    """

    dimensions = 4
    p: float = drawn(0.0, 1.0, default=0.5)
    inplace: bool = drawn(False, True, default=False)


@dataclass(frozen=True)
class Dropout3d(_Dropout):
    """``nn.Dropout3d``: ``x`` (N, C, D, H, W), whole channels dropped; ``y = (1 − p) x``, ``dx = (1 − p) v``.

    Source: the documentation of ``torch.nn.Dropout3d``.
    """

    dimensions = 5
    p: float = drawn(0.0, 1.0, default=0.5)
    inplace: bool = drawn(False, True, default=False)


class _AlphaDropout(_Dropout):
    @property
    def writes(self) -> bool:
        """Never: the modules take ``inplace``, and do not hand it on to the function that they call."""
        return False


@dataclass(frozen=True)
class AlphaDropout(_AlphaDropout):
    """``nn.AlphaDropout``: ``x`` of any shape; ``y = (1 − p) x`` and ``dx = (1 − p) v`` for p of 0 and 1.

    For p = 1 the documented scaling to unit variance has no finite value; torch multiplies by zero.
    Source: the documentation of ``torch.nn.AlphaDropout``.
    """

    p: float = drawn(0.0, 1.0, default=0.5)
    inplace: bool = drawn(False, True, default=False)


@dataclass(frozen=True)
class FeatureAlphaDropout(_AlphaDropout):
    """``nn.FeatureAlphaDropout``: ``x`` (N, C, D, H, W), whole channels; otherwise as `AlphaDropout`.

    Source: the documentation of ``torch.nn.FeatureAlphaDropout``.
    """

    dimensions = 5
    p: float = drawn(0.0, 1.0, default=0.5)
    inplace: bool = drawn(False, True, default=False)
