"""Interpolation: each place of the resized axis weighs a few places of the input, axis by axis."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Union

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.layers.axes import Separable, selection
from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.primitive import Array, Layer, Operand, Shape

Size = Union[int, tuple[int, ...], None]
Factor = Union[float, tuple[float, ...], None]


def hat(distance: Array) -> Array:
    """Linear interpolation: ``max(0, 1 - |t|)``."""
    return np.maximum(0, 1 - np.abs(distance))


def keys(distance: Array, a: float = -0.75) -> Array:
    """Cubic convolution (Keys 1981, equation 4) with the free parameter that torch takes."""
    t = np.abs(distance)
    near = ((a + 2) * t - (a + 3)) * t**2 + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


KERNELS: dict[str, Callable[[Array], Array]] = {"linear": hat, "bilinear": hat, "trilinear": hat, "bicubic": keys}
MODES = {
    3: ("nearest", "linear", "nearest-exact"),
    4: ("nearest", "bilinear", "bicubic", "nearest-exact"),
    5: ("nearest", "trilinear", "nearest-exact"),
}
"""The modes for an input of so many dimensions."""


@lru_cache(maxsize=1024)
def weights(mode: str, aligned: bool, side: int, resized: int, ratio: float) -> Array:
    """The matrix (resized, side) of one axis; ``ratio`` is the input's spacing over the output's.

    A place ``j`` of the output lies at ``(j + ½) ratio - ½`` of the input, or, with corners aligned, at ``j (side - 1)
    / (resized - 1)``; it weighs its neighbours by their distance, the border repeated. The nearest modes read ``⌊j
    ratio⌋``, and ``⌊(j + ½) ratio⌋`` for nearest-exact. For sides as short as ours no rounding of ``ratio`` matters.
    """
    places = np.arange(resized)
    if mode not in KERNELS:
        source = np.floor((places + (0.5 if mode == "nearest-exact" else 0)) * ratio)
        return selection(np.minimum(source, side - 1), side)
    at = places * ((side - 1) / max(1, resized - 1)) if aligned else (places + 0.5) * ratio - 0.5
    neighbours = np.floor(at)[:, None] + np.arange(-1, 3)
    weighed = KERNELS[mode](at[:, None] - neighbours)[..., None] * selection(np.clip(neighbours, 0, side - 1), side)
    return weighed.sum(1)


class _Resize(Separable):
    """``y = (A₁ ⊗ A₂ ⊗ …) x`` with the `weights` of each axis."""

    size: Size
    scale_factor: Factor

    def source(self) -> str:
        """The constructor call."""
        return constructor(self)

    @abstractmethod
    def way(self) -> tuple[str, bool, bool]:
        """The mode; whether corners are aligned; whether the ratio is that of the sides even if a factor is given."""

    def matrices(self, sides: Shape) -> Sequence[Array]:
        """The `weights` of each axis."""
        mode, aligned, recomputed = self.way()
        matrices = []
        for axis, side in enumerate(sides):
            if self.scale_factor is None:
                resized = self.size[axis] if isinstance(self.size, tuple) else int(self.size or 0)
                ratio = side / resized
            else:
                factor = self.scale_factor[axis] if isinstance(self.scale_factor, tuple) else self.scale_factor
                resized = int(side * factor)
                ratio = side / resized if recomputed else 1 / factor
            matrices.append(weights(mode, aligned, side, resized, ratio))
        return matrices


def _resized(draw: st.DrawFn, sides: Shape) -> dict[str, Any]:
    """A scale factor or a size, one for all axes or one for each; every resized side has a place at least."""
    factors = [st.sampled_from([2.0, 1.5, 1.0, *([0.5] if side > 1 else [])]) for side in (min(sides), *sides)]
    lengths = [st.integers(1, 5) for _ in sides]
    return draw(
        st.one_of(
            st.fixed_dictionaries({"scale_factor": st.one_of(factors[0], st.tuples(*factors[1:]))}),
            st.fixed_dictionaries({"size": st.one_of(lengths[0], st.tuples(*lengths))}),
        )
    )


@dataclass(frozen=True)
class Upsample(_Resize):
    """``nn.Upsample``: ``x`` (N, C, ...) to ``y`` (N, C, ...), one to three further axes interpolated.

    The side of an axis becomes ``size``, or ``⌊side · scale_factor⌋``; `weights` gives the matrix ``A`` of each axis,
    and ``dx`` is ``v`` under the transposes. Source: the documentation of ``torch.nn.Upsample`` and of
    ``torch.nn.functional.interpolate``.
    """

    size: Size = None
    scale_factor: Factor = None
    mode: str = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor: bool | None = None

    @property
    def since(self) -> str:
        """1.11 brought the mode nearest-exact, and recompute_scale_factor for the module.

        Up to 1.9, an axis of which one place is left takes it from the first one, not from the middle; bicubic, 1.7 is
        off even with aligned corners.
        """
        if self.mode == "nearest-exact" or self.recompute_scale_factor is not None:
            return "1.11"
        wanted = self.size or self.scale_factor
        shrunk = {1, 0.5} & set(wanted if isinstance(wanted, tuple) else (wanted,))
        middle = self.mode == "bicubic" or (self.mode in KERNELS and not self.align_corners)
        return "1.10" if shrunk and middle else "1.7"

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, C, W), (N, C, H, W) or (N, C, D, H, W)."""
        return len(shape) in MODES and all(shape)

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A mode for so many axes; only the interpolating ones align corners, only a factor can be recomputed."""
        settings = _resized(draw, shape[2:])
        settings["mode"] = draw(st.sampled_from(MODES[len(shape)]))
        if settings["mode"] in KERNELS:
            settings["align_corners"] = draw(st.sampled_from([None, False, True]))
        if "scale_factor" in settings:
            settings["recompute_scale_factor"] = draw(st.sampled_from([None, False, True]))
        return cls(**settings), (Operand(shape),)

    def way(self) -> tuple[str, bool, bool]:
        """As the settings say."""
        return self.mode, bool(self.align_corners), bool(self.recompute_scale_factor)


class _Resize2d(_Resize):
    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, C, H, W)."""
        return len(shape) == 4 and all(shape)

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A scale factor or a size."""
        construct: Any = cls
        return construct(**_resized(draw, shape[2:])), (Operand(shape),)


@dataclass(frozen=True)
class UpsamplingNearest2d(_Resize2d):
    """``nn.UpsamplingNearest2d``: ``nn.Upsample`` of (N, C, H, W) in the mode nearest.

    Source: the documentation of ``torch.nn.UpsamplingNearest2d``.
    """

    size: Size = None
    scale_factor: Factor = None

    def way(self) -> tuple[str, bool, bool]:
        """Nearest."""
        return "nearest", False, False


@dataclass(frozen=True)
class UpsamplingBilinear2d(_Resize2d):
    """``nn.UpsamplingBilinear2d``: ``nn.Upsample`` of (N, C, H, W) in the mode bilinear, corners aligned.

    Source: the documentation of ``torch.nn.UpsamplingBilinear2d``.
    """

    size: Size = None
    scale_factor: Factor = None

    def way(self) -> tuple[str, bool, bool]:
        """Bilinear, corners aligned."""
        return "bilinear", True, False
