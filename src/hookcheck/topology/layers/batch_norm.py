"""BatchNorm and InstanceNorm: each channel standardised by the statistics of the input, or in eval by running ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.batched import Batched
from hookcheck.topology.layers.normalisation import (
    AFFINE,
    EPS,
    Axes,
    Normalisation,
    Pull,
    affine_parameters,
    standardised,
)
from hookcheck.topology.primitive import Array, Layer, Operand, Primitive, Shape


class _Running(Normalisation):
    ranks: ClassVar[tuple[int, ...]]
    num_features: int
    eps: float
    momentum: float | None
    affine: bool
    track_running_stats: bool
    bias: bool
    training: bool

    @property
    def since(self) -> str:
        """``bias`` is in 2.13."""
        return "1.7" if self.bias else "2.13"

    def parameters(self) -> dict[str, Shape]:
        """``weight`` and ``bias`` (num_features,), if there are any."""
        return affine_parameters(self.affine, self.bias, (self.num_features,))

    def buffers(self) -> dict[str, Array]:
        """The running mean and variance (num_features,), and the number of forwards that went into them."""
        if not self.track_running_stats:
            return {}
        mean, variance = np.zeros(self.num_features), np.ones(self.num_features)
        return {"running_mean": mean, "running_var": variance, "num_batches_tracked": np.zeros((), np.int64)}

    def evaluated(self) -> Primitive:
        """The same with the running statistics, if it has any."""
        return replace(self, training=False) if self.track_running_stats else self  # type: ignore[type-var]

    def standard(self, x: Array, parameters: dict[str, Array]) -> tuple[Array, Pull]:
        """Standardised by the input's statistics, or by the running ones, which are constants."""
        if self.training:
            return standardised(x, self.measured(x), self.eps)
        r = 1 / np.sqrt(self._aligned(parameters["running_var"], x) + self.eps)
        return (x - self._aligned(parameters["running_mean"], x)) * r, lambda g: g * r

    def measured(self, x: Array) -> Axes:
        """The axes that a mean and a variance are taken over."""
        return self.shared(x)

    def blended(self, x: Array, parameters: dict[str, Array], share: float) -> dict[str, Array]:
        """The running statistics after ``x``, whose own have that ``share``; its variance is the unbiased one."""
        axes = self.measured(x)
        statistics = {"running_mean": x.mean(axes), "running_var": x.var(axes, ddof=1)}
        of_channel = {name: array.reshape(-1, self.num_features).mean(0) for name, array in statistics.items()}
        return {name: (1 - share) * parameters[name] + share * array for name, array in of_channel.items()}


class _BatchNorm(_Running):
    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, C, ...) with more than one number a channel: torch refuses a single one."""
        return len(shape) in cls.ranks and all(shape) and int(np.prod(shape)) > shape[1]

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """As many features as there are channels."""
        momentum = draw(st.sampled_from([0.1, 0.5, None]))
        (affine, bias), track = draw(AFFINE), draw(st.sampled_from([True, False]))
        return cls(shape[1], draw(EPS), momentum, affine, track, bias), (Operand(shape),)  # type: ignore[call-arg]

    def updated(self, inputs: tuple[Array, ...], parameters: dict[str, Array]) -> dict[str, Array]:
        """Running statistics moved by ``momentum`` towards the batch's; without one, their mean over all batches."""
        if not self.track_running_stats:
            return {}
        count = parameters["num_batches_tracked"] + 1
        share = float(1 / count) if self.momentum is None else self.momentum
        return {**self.blended(inputs[0], parameters, share), "num_batches_tracked": count}


class _InstanceNorm(_Running):
    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(N, C, ...) with more than one number a channel of an instance: torch refuses a single one."""
        return len(shape) in cls.ranks and all(shape) and int(np.prod(shape[2:])) > 1

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """As many features as there are channels."""
        affine, bias = draw(st.sampled_from([(False, True), (True, True), (True, True), (True, False)]))
        momentum, track = draw(st.sampled_from([0.1, 0.5])), draw(st.booleans())
        return cls(shape[1], draw(EPS), momentum, affine, track, bias), (Operand(shape),)  # type: ignore[call-arg]

    def measured(self, x: Array) -> Axes:
        """The axes after the channels."""
        return tuple(range(2, x.ndim))

    def updated(self, inputs: tuple[Array, ...], parameters: dict[str, Array]) -> dict[str, Array]:
        """Running statistics moved by ``momentum`` towards the mean of the instances'; forwards are not counted."""
        if not self.track_running_stats:
            return {}
        assert self.momentum is not None
        return self.blended(inputs[0], parameters, self.momentum)

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """A view of what one batch norm made of the channels of all instances side by side."""
        n, c, *sides = step.v.shape
        return step.view(step.v.reshape(1, n * c, *sides))


@dataclass(frozen=True)
class BatchNorm1d(_BatchNorm):
    """``nn.BatchNorm1d``: ``x`` (N, C) or (N, C, L), each channel standardised over all other axes.

    ``x̂ = (x − mean) / √(var + eps)``, ``y = x̂ γ + β``; with ``g = v γ`` and ``r = 1 / √(var + eps)`` the VJP is
    ``dx = r (g − mean(g) − x̂ mean(g x̂))``, ``dγ = Σ v x̂``, ``dβ = Σ v``. In eval mode mean and variance are the running
    ones if they are tracked, thus constants: ``dx = r g``. ``training`` says which of the two it is, and is no argument
    of the constructor. Source: the documentation of ``torch.nn.BatchNorm1d``; Ioffe and Szegedy, 'Batch Normalization'
    (2015).
    """

    smooth = True
    overwritable = True
    rounded_once = True
    ranks = (2, 3)
    num_features: int
    eps: float = 1e-5
    momentum: float | None = 0.1
    affine: bool = True
    track_running_stats: bool = True
    bias: bool = True
    training: bool = True


@dataclass(frozen=True)
class BatchNorm2d(_BatchNorm):
    """``nn.BatchNorm2d``: ``x`` (N, C, H, W), with the formulas of `BatchNorm1d`.

    Source: the documentation of ``torch.nn.BatchNorm2d``.
    """

    smooth = True
    overwritable = True
    rounded_once = True
    ranks = (4,)
    num_features: int
    eps: float = 1e-5
    momentum: float | None = 0.1
    affine: bool = True
    track_running_stats: bool = True
    bias: bool = True
    training: bool = True


@dataclass(frozen=True)
class BatchNorm3d(_BatchNorm):
    """``nn.BatchNorm3d``: ``x`` (N, C, D, H, W), with the formulas of `BatchNorm1d`.

    Source: the documentation of ``torch.nn.BatchNorm3d``.
    """

    overwritable = True
    ranks = (5,)
    num_features: int
    eps: float = 1e-5
    momentum: float | None = 0.1
    affine: bool = True
    track_running_stats: bool = True
    bias: bool = True
    training: bool = True


@dataclass(frozen=True)
class InstanceNorm1d(Batched, _InstanceNorm):
    """``nn.InstanceNorm1d``: ``x`` (N, C, L), each channel of each instance standardised over its own elements.

    The formulas of `BatchNorm1d`, with mean and variance over the axes after the channels alone.
    Source: the documentation of ``torch.nn.InstanceNorm1d``; Ulyanov, Vedaldi and Lempitsky, 'Instance Normalization'
    (2016).
    """

    smooth = True
    overwritable = True
    squeezed = True
    ranks = (3,)
    num_features: int
    eps: float = 1e-5
    momentum: float = 0.1
    affine: bool = False
    track_running_stats: bool = False
    bias: bool = True
    training: bool = True
    unbatched: bool = False


@dataclass(frozen=True)
class InstanceNorm2d(Batched, _InstanceNorm):
    """``nn.InstanceNorm2d``: ``x`` (N, C, H, W), with the formulas of `InstanceNorm1d`.

    Source: the documentation of ``torch.nn.InstanceNorm2d``.
    """

    smooth = True
    overwritable = True
    squeezed = True
    ranks = (4,)
    num_features: int
    eps: float = 1e-5
    momentum: float = 0.1
    affine: bool = False
    track_running_stats: bool = False
    bias: bool = True
    training: bool = True
    unbatched: bool = False


@dataclass(frozen=True)
class InstanceNorm3d(Batched, _InstanceNorm):
    """``nn.InstanceNorm3d``: ``x`` (N, C, D, H, W), with the formulas of `InstanceNorm1d`.

    Source: the documentation of ``torch.nn.InstanceNorm3d``.
    """

    squeezed = True
    ranks = (5,)
    num_features: int
    eps: float = 1e-5
    momentum: float = 0.1
    affine: bool = False
    track_running_stats: bool = False
    bias: bool = True
    training: bool = True
    unbatched: bool = False
