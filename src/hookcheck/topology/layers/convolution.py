"""Conv1d, Conv2d, Conv3d: each output element is a weighted sum over a window of the padded input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, NodeGradient, Step
from hookcheck.topology.layers.batched import Batched
from hookcheck.topology.layers.convolving import READ, Convolving, Pair, Triple
from hookcheck.topology.primitive import Array, Gradients, Layer, Operand, Shape

MOST: dict[str, Callable[[int], int]] = {
    "zeros": lambda n: 2,
    "reflect": lambda n: min(2, n - 1),
    "replicate": lambda n: 2,
    "circular": lambda n: min(2, n),
}
"""For each padding mode, the largest padding to draw for ``n`` elements: there is no reflection beyond the far end, and
no second turn of a circle."""


class _Convolution(Batched, Convolving):
    squeezed = True
    complex_since = "1.12"  # complex convolutions are documented from this release on

    @property
    def since(self) -> str:
        """Padding by name is new in 1.9; three axes can be padded by reflection since 1.10.

        In 1.7, the weight of a kernel of one element has a wrong gradient on three axes: LY-02.
        """
        if self.padding_mode == "reflect" and self.axes == 3:
            return "1.10"
        if isinstance(self.padding, str):
            return "1.9"
        return "1.8" if self.axes == 3 and max(self.kernel_size) == 1 else "1.7"

    @property
    def unbatched_since(self) -> str:
        """A circle without a batch is closed since 2.1: LY-08."""
        return "2.1" if self.unbatched and self.padding_mode == "circular" else super().unbatched_since

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """A kernel that the padded input covers."""
        channels, sides = shape[1], shape[2:]
        groups = draw(st.sampled_from([g for g in range(1, channels + 1) if channels % g == 0]))
        mode = draw(st.sampled_from(list(READ)))
        named = draw(st.sampled_from(["", "", "valid", "same"]))
        most = [MOST[mode](n) for n in sides]
        padding = tuple(0 if named else draw(st.integers(0, m)) for m in most)
        dilation = tuple(draw(st.integers(1, 2)) for _ in sides)
        # how far a window may reach: 'same' pads by that much, half of it on either side
        reach = [2 * m if named == "same" else n + 2 * p - 1 for n, m, p in zip(sides, most, padding)]
        kernel = tuple(draw(st.integers(1, min(3, 1 + r // d))) for r, d in zip(reach, dilation))
        stride = tuple(1 if named == "same" else draw(st.integers(1, 2)) for _ in sides)
        out_channels, bias = groups * draw(st.integers(1, 2)), draw(st.booleans())
        settings = (kernel, stride, named or padding, dilation, groups, bias, mode)
        return cls(channels, out_channels, *settings), (Operand(shape),)  # type: ignore[call-arg]

    def extent(self, sides: Shape) -> Shape:
        """The lengths of the output's axes for an input with axes of length ``sides``."""
        if self.padding == "same":
            return sides
        settings = zip(sides, self.margins, self.dilation, self.kernel_size, self.stride)
        return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in settings)

    def value(self, x: Array, weight: Array, bias: Array | None = None) -> Array:
        """``x`` (N, in_channels, ...) to ``y`` (N, out_channels, ...)."""
        return self.shifted(self.narrowed(x, weight, self.extent(x.shape[2:])), bias)

    def pull(self, v: Array, x: Array, weight: Array, bias: Array | None = None) -> Gradients:
        """``dx`` of ``x``'s shape; ``dW`` and ``db`` of the parameters' shapes."""
        return self.widened(v, weight.conj(), x.shape[2:]), self.gradients(self.met(v, x.conj()), v)

    def last_node_of_batch(self, step: Step) -> tuple[Form, ...]:
        """As all convolutions; up to 1.10 groups may be one Node all the same, by kernels for float32 or three axes."""
        whole: Form = (self._of_padded(step), step.of("weight"), step.of("bias"))
        forms = self.convolved(step, whole)
        at_once = self.axes == 3 or (self.axes == 2 and step.dtypes[0] == "float32")
        return (*forms, whole) if step.release < (1, 11) and self.groups > 1 and at_once else forms

    def _of_padded(self, step: Step) -> NodeGradient | None:
        """The gradient of ``x`` as a Node before has padded it: by a mode, or for "same" by the odd element."""
        sides = step.inputs[0].shape[2:]
        most = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)] if self.padding == "same" else []
        odd = [m - 2 * margin for m, margin in zip(most, self.margins)] or [0] * self.axes
        modes = self.padding_mode != "zeros"
        if not (modes or any(odd)):
            return step.of(0)
        whole = tuple(n + 2 * m * modes + extra for n, m, extra in zip(sides, self.margins, odd))
        settings: Any = self
        margins = (0,) * self.axes if modes else tuple(self.margins)
        bare = replace(settings, padding=margins, padding_mode="zeros")
        return step.inner(bare.widened(step.v, step.parameters["weight"].conj(), whole), 0)


@dataclass(frozen=True)
class Conv1d(_Convolution):
    """``nn.Conv1d``: ``x`` (N, in_channels, L) to ``y`` (N, out_channels, L'); the formulas of `Conv2d` on one axis.

    Source: the documentation of ``torch.nn.Conv1d``.
    """

    smooth = True
    overwritable = True
    axes = 1
    in_channels: int
    out_channels: int
    kernel_size: tuple[int]
    stride: tuple[int] = (1,)
    padding: tuple[int] | str = (0,)
    dilation: tuple[int] = (1,)
    groups: int = 1
    bias: bool = True
    padding_mode: str = "zeros"
    unbatched: bool = False


@dataclass(frozen=True)
class Conv2d(_Convolution):
    """``nn.Conv2d``: ``x`` (N, in_channels, H, W) to ``y`` (N, out_channels, H', W').

    ``y[n, o, i, j] = b[o] + Σ_{c, p, q} W[o, c, p, q] · x̃[n, c, i·s + p·d, j·s + q·d]`` with ``x̃`` the padded input and
    ``c`` over the channels of ``o``'s group. With cotangent ``v`` the transposed sums: ``dx̃`` adds ``W̄ · v`` where the
    forward read, ``dx`` adds ``dx̃`` where padding copied from, ``dW[o, c, p, q] = Σ v · conj(x̃)``, ``db = Σ v``.
    ``padding="same"`` adds as much as the kernel reaches, the odd element at the end.
    Source: the documentation of ``torch.nn.Conv2d``.
    """

    smooth = True
    overwritable = True
    axes = 2
    in_channels: int
    out_channels: int
    kernel_size: Pair
    stride: Pair = (1, 1)
    padding: Pair | str = (0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1
    bias: bool = True
    padding_mode: str = "zeros"
    unbatched: bool = False


@dataclass(frozen=True)
class Conv3d(_Convolution):
    """``nn.Conv3d``: ``x`` (N, in_channels, D, H, W) to ``y`` of as many axes; the formulas of `Conv2d` on three axes.

    Source: the documentation of ``torch.nn.Conv3d``.
    """

    overwritable = True
    axes = 3
    in_channels: int
    out_channels: int
    kernel_size: Triple
    stride: Triple = (1, 1, 1)
    padding: Triple | str = (0, 0, 0)
    dilation: Triple = (1, 1, 1)
    groups: int = 1
    bias: bool = True
    padding_mode: str = "zeros"
    unbatched: bool = False
