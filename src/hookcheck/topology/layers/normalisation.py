"""LayerNorm, RMSNorm, GroupNorm: an input divided by its own spread over some of its axes, then scaled and shifted."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Release, Step
from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.layers.unary import conjugated
from hookcheck.topology.primitive import Array, Gradients, Layer, Operand, Shape, SingleStep

Axes = tuple[int, ...]
Pull = Callable[[Array], Array]

EPS = st.sampled_from([1e-5, 0.5, 1.0, 2.0])
"""What is added to a variance: torch's default, and more often what keeps gradients small where the variance is 0."""

AFFINE = st.sampled_from([(True, True), (False, True), (True, True), (True, False)])
"""Whether to scale (and shift), and whether to shift then; that there is no shift alone is new in some layers."""


def centred(x: Array, axes: Axes) -> Array:
    """``x − mean(x)`` over ``axes``; this is its own VJP."""
    return x - x.mean(axes, keepdims=True)


def scaled(x: Array, axes: Axes, eps: float) -> tuple[Array, Pull]:
    """``y = r x`` with ``r = 1 / √(mean(x²) + eps)`` over ``axes``, and its VJP: ``g`` to ``r (g − y mean(g y))``."""
    r = 1 / np.sqrt((x * x).mean(axes, keepdims=True) + eps)
    y = r * x
    return y, lambda g: r * (g - y * (g * y).mean(axes, keepdims=True))


def standardised(x: Array, axes: Axes, eps: float) -> tuple[Array, Pull]:
    """``(x − mean(x)) / √(var(x) + eps)`` over ``axes``, the variance the biased one, and its VJP."""
    y, pull = scaled(centred(x, axes), axes, eps)
    return y, lambda g: centred(pull(g), axes)


def affine_parameters(affine: bool, bias: bool, shape: Shape) -> dict[str, Shape]:
    """``weight`` and ``bias`` of that shape; without ``affine`` neither, without ``bias`` the first alone."""
    names = ("weight", "bias") if bias else ("weight",)
    return dict.fromkeys(names, shape) if affine else {}


class Normalisation(SingleStep):
    """What all normalisations share: ``y = x̂ γ + β``, where ``γ`` (weight) and ``β`` (bias) may be absent.

    With cotangent ``v``: ``dx`` is ``x̂``'s VJP of ``v γ``, ``dγ = Σ v x̂`` and ``dβ = Σ v``, both over the axes that
    share one parameter; for complex numbers at their conjugates (see `conjugated`). It is no layer itself.
    """

    @abstractmethod
    def standard(self, x: Array, parameters: dict[str, Array]) -> tuple[Array, Pull]:
        """``x̂``, and its VJP as a function of the cotangent."""

    def shared(self, x: Array) -> Axes:
        """The axes of ``x`` along which ``γ`` and ``β`` are the same: all but the channels."""
        return (0, *range(2, x.ndim))

    def source(self) -> str:
        """The constructor call, settings at their default left out."""
        return constructor(self, "training")

    def value(self, x: Array, **parameters: Array) -> Array:
        """``x`` to ``y`` of the same shape."""
        y = self._times_weight(self.standard(x, parameters)[0], parameters)
        return y + self._aligned(parameters["bias"], x) if "bias" in parameters else y

    def pull(self, v: Array, x: Array, **parameters: Array) -> Gradients:
        """``dx`` of ``x``'s shape; ``dγ`` and ``dβ`` of the parameters' shapes."""
        (x,), parameters = conjugated((x,), parameters)
        y, pull = self.standard(x, parameters)
        unsummed = {"weight": v * y, "bias": v}
        gradients = {name: unsummed[name].sum(self.shared(x)) for name in self.parameters()}
        return pull(self._times_weight(v, parameters)), gradients

    def _times_weight(self, y: Array, parameters: dict[str, Array]) -> Array:
        return y * self._aligned(parameters["weight"], y) if "weight" in parameters else y

    def _aligned(self, parameter: Array, x: Array) -> Array:
        shared = self.shared(x)
        return parameter.reshape([1 if axis in shared else n for axis, n in enumerate(x.shape)])

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """One Node, of input, weight and bias, whichever of the two there are."""
        return ((step.of(0), step.of("weight"), step.of("bias")),)


class _OverLastAxes(Normalisation):
    normalized_shape: Shape

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """Any shape with at least one axis, none of them empty."""
        return len(shape) > 0 and all(shape)

    def shared(self, x: Array) -> Axes:
        """The axes before the normalized ones."""
        return tuple(range(x.ndim - len(self.normalized_shape)))

    def normalized(self) -> Axes:
        """The axes of the normalized shape, counted from the last."""
        return tuple(range(-len(self.normalized_shape), 0))


@dataclass(frozen=True)
class LayerNorm(_OverLastAxes):
    """``nn.LayerNorm``: ``x`` (..., *normalized_shape), standardised over those last axes.

    ``x̂ = (x − mean) / √(var + eps)``; with ``g = v γ`` and ``r = 1 / √(var + eps)`` the VJP is
    ``dx = r (g − mean(g) − x̂ mean(g x̂))``. ``γ`` and ``β`` have the normalized shape.
    Source: the documentation of ``torch.nn.LayerNorm``; Ba, Kiros and Hinton, 'Layer Normalization' (2016).
    """

    smooth = True
    overwritable = True
    rounded_once = True

    normalized_shape: Shape
    eps: float = 1e-5
    elementwise_affine: bool = True
    bias: bool = True

    @property
    def since(self) -> str:
        """``bias`` is new in 2.1."""
        return "1.7" if self.bias else "2.1"

    def width(self, outputs: int, release: Release) -> int:
        """Up to 1.9 its Node had the mean and the scale for outputs, too (pytorch#50467)."""
        return 3 if release < (1, 10) else 1

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Over one or more of the last axes, of two numbers at least: one less its mean is nothing but rounding."""
        last = draw(st.sampled_from([n for n in range(1, len(shape) + 1) if np.prod(shape[-n:]) > 1]))
        return cls(shape[-last:], draw(EPS), *draw(AFFINE)), (Operand(shape),)

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """Any shape of two numbers or more."""
        return int(np.prod(shape)) > 1

    def parameters(self) -> dict[str, Shape]:
        """``weight`` and ``bias`` of the normalized shape, if there are any."""
        return affine_parameters(self.elementwise_affine, self.bias, self.normalized_shape)

    def standard(self, x: Array, parameters: dict[str, Array]) -> tuple[Array, Pull]:
        """Standardised over the last axes."""
        return standardised(x, self.normalized(), self.eps)


@dataclass(frozen=True)
class RMSNorm(_OverLastAxes):
    """``nn.RMSNorm``: ``x`` (..., *normalized_shape), divided by its root mean square over those last axes.

    ``x̂ = r x`` with ``r = 1 / √(mean(x²) + eps)``; with ``g = v γ`` the VJP is ``dx = r (g − x̂ mean(g x̂))``. There is
    no ``β``. ``eps`` is always given: torch's default is the spacing of the input's dtype at 1, which is no one number.
    Source: the documentation of ``torch.nn.RMSNorm``; Zhang and Sennrich, 'Root Mean Square Layer Normalization'
    (2019).
    """

    keywords = ("x",)
    since = "2.4"
    complex_since = since  # tested on complex numbers (OpInfo), where it takes the mean of x², not of |x|²
    normalized_shape: Shape
    eps: float
    elementwise_affine: bool = True

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Over one or more of the last axes."""
        last = draw(st.integers(1, len(shape)))
        return cls(shape[-last:], draw(EPS), draw(st.sampled_from([True, False]))), (Operand(shape),)

    def parameters(self) -> dict[str, Shape]:
        """``weight`` of the normalized shape, if there is one."""
        return {"weight": self.normalized_shape} if self.elementwise_affine else {}

    def standard(self, x: Array, parameters: dict[str, Array]) -> tuple[Array, Pull]:
        """Scaled over the last axes."""
        return scaled(x, self.normalized(), self.eps)

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """The last product: of ``x̂`` and ``γ``, or of ``x`` and ``r``; narrow types are wider inside, and cast back.

        Since 2.9 a product that is not contiguous is copied (``contiguous`` in ATen's layer_norm.cpp).
        """
        (x,), v = step.inputs, step.v
        copy = step.alone(v)
        if step.dtypes[0] in ("float16", "bfloat16"):
            return copy
        if self.elementwise_affine:
            weight = step.parameters["weight"]
            product = ((step.inner(v * weight.conj(), 0), step.of("weight")),)
        else:
            r = 1 / np.sqrt((x * x).mean(self.normalized(), keepdims=True) + self.eps)
            of_r = (v * x.conj()).sum(self.normalized(), keepdims=True)
            product = ((step.inner(v * r.conj()), step.inner(of_r)),)
        return product if step.contiguous or step.release < (2, 9) else (*product, *copy)


@dataclass(frozen=True)
class GroupNorm(Normalisation):
    """``nn.GroupNorm``: ``x`` (N, num_channels, ...), standardised over each group of channels and all further axes.

    The formulas of `LayerNorm` over those elements; ``γ`` and ``β`` have one element a channel.
    Source: the documentation of ``torch.nn.GroupNorm``; Wu and He, 'Group Normalization' (2018).
    """

    smooth = True
    overwritable = True
    rounded_once = True

    num_groups: int
    num_channels: int
    eps: float = 1e-5
    affine: bool = True
    bias: bool = True

    @property
    def since(self) -> str:
        """``bias`` is in 2.13."""
        return "1.7" if self.bias else "2.13"

    def width(self, outputs: int, release: Release) -> int:
        """Its Node has the mean and the scale of each group for outputs, too (``native_group_norm``)."""
        return 3

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, C, ...), two numbers a sample or more: one less its mean is nothing but rounding."""
        return len(shape) > 1 and bool(shape[0]) and int(np.prod(shape[1:])) > 1

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Groups of equally many channels, of two numbers a sample at least."""
        channels, size = shape[1], int(np.prod(shape[1:]))
        groups = draw(st.sampled_from([g for g in range(1, channels + 1) if channels % g == 0 and size // g > 1]))
        return cls(groups, channels, draw(EPS), *draw(AFFINE)), (Operand(shape),)

    def parameters(self) -> dict[str, Shape]:
        """``weight`` and ``bias`` (num_channels,), if there are any."""
        return affine_parameters(self.affine, self.bias, (self.num_channels,))

    def standard(self, x: Array, parameters: dict[str, Array]) -> tuple[Array, Pull]:
        """Standardised within each group."""
        groups = (len(x), self.num_groups, -1)
        y, pull = standardised(x.reshape(groups), (2,), self.eps)
        return y.reshape(x.shape), lambda g: pull(g.reshape(groups)).reshape(x.shape)
