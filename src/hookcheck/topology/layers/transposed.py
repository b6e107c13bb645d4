"""ConvTranspose1d, ConvTranspose2d, ConvTranspose3d: the linear map that takes a convolution's gradient back."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.batched import Batched
from hookcheck.topology.layers.convolving import Convolving, Pair, Triple
from hookcheck.topology.primitive import Array, Gradients, Layer, Operand, Shape
from hookcheck.topology.tree import Literal, Pack, Tree


class _Transposed(Batched, Convolving):
    squeezed = True
    keywords = ("input", "output_size")
    complex_since = "2.0"  # the last of the three came with this release
    padding: tuple[int, ...]
    output_padding: tuple[int, ...]
    output_size: tuple[int, ...] | None

    @property
    def since(self) -> str:
        """Up to 1.8, the weight's gradient is wrong where a kernel of one element is set apart, cropped or extended:
        LY-01."""
        single = max(self.kernel_size) == 1 and (max(self.stride) > 1 or any((*self.padding, *self.output_padding)))
        return "1.9" if single else "1.7"

    @property
    def unbatched_since(self) -> str:
        """Up to 1.11, ``output_size`` was taken for that of a batch: LY-06."""
        return "1.12" if self.unbatched and self.output_size else super().unbatched_since

    @classmethod
    def fitting_batch(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Padding that leaves an output, and an ``output_size`` within the one stride that it can choose from."""
        channels, sides = shape[1], shape[2:]
        groups = draw(st.sampled_from([g for g in range(1, channels + 1) if channels % g == 0]))
        kernel, stride, dilation = (tuple(draw(st.integers(1, most)) for _ in sides) for most in (3, 2, 2))
        spare = tuple(draw(st.integers(0, max(s, d) - 1)) for s, d in zip(stride, dilation))
        reach = [(n - 1) * s + d * (k - 1) for n, s, d, k in zip(sides, stride, dilation, kernel)]
        padding = tuple(draw(st.integers(0, min(2, r // 2))) for r in reach)
        least = [r + 1 - 2 * p for r, p in zip(reach, padding)]
        sizes = st.tuples(*(st.integers(n, n + s - 1) for n, s in zip(least, stride)))
        out_channels, bias, size = groups * draw(st.integers(1, 2)), draw(st.booleans()), draw(st.none() | sizes)
        settings = (kernel, stride, padding, spare, groups, bias, dilation, "zeros", size)
        return cls(channels, out_channels, *settings), (Operand(shape),)  # type: ignore[call-arg]

    @property
    def ends(self) -> tuple[int, int]:
        """The output is the wide side."""
        return self.in_channels, self.out_channels

    def call(self, operands: tuple[Tree, ...]) -> tuple[tuple[Tree, ...], tuple[tuple[str, Tree], ...]]:
        """``output_size`` is an argument of the call, not of the constructor."""
        if self.output_size is None:
            return operands, ()
        return operands, (("output_size", Pack("tuple", tuple(map(Literal, self.output_size)))),)

    def extent(self, sides: Shape) -> Shape:
        """The lengths of the output's axes for an input with axes of length ``sides``."""
        settings = zip(sides, self.stride, self.padding, self.dilation, self.kernel_size, self.output_padding)
        return self.output_size or tuple((n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, s, p, d, k, e in settings)

    def value(self, x: Array, weight: Array, bias: Array | None = None) -> Array:
        """``x`` (N, in_channels, ...) to ``y`` (N, out_channels, ...)."""
        return self.shifted(self.widened(x, weight, self.extent(x.shape[2:])), bias)

    def pull(self, v: Array, x: Array, weight: Array, bias: Array | None = None) -> Gradients:
        """``dx`` of ``x``'s shape; ``dW`` and ``db`` of the parameters' shapes."""
        return self.narrowed(v, weight.conj(), x.shape[2:]), self.gradients(self.met(x.conj(), v), v)

    def last_node_of_batch(self, step: Step) -> tuple[Form, ...]:
        """As all convolutions."""
        return self.convolved(step, (step.of(0), step.of("weight"), step.of("bias")))


@dataclass(frozen=True)
class ConvTranspose1d(_Transposed):
    """``nn.ConvTranspose1d``: ``x`` (N, in_channels, L) to ``y`` (N, out_channels, L').

    The formulas of `ConvTranspose2d` on one axis. Source: the documentation of ``torch.nn.ConvTranspose1d``.
    """

    smooth = True
    overwritable = True
    axes = 1
    in_channels: int
    out_channels: int
    kernel_size: tuple[int]
    stride: tuple[int] = (1,)
    padding: tuple[int] = (0,)
    output_padding: tuple[int] = (0,)
    groups: int = 1
    bias: bool = True
    dilation: tuple[int] = (1,)
    padding_mode: str = "zeros"
    output_size: tuple[int] | None = None
    unbatched: bool = False


@dataclass(frozen=True)
class ConvTranspose2d(_Transposed):
    """``nn.ConvTranspose2d``: ``x`` (N, in_channels, H, W) to ``y`` (N, out_channels, H', W').

    Each input element adds a kernel to the output, which is then cropped by the padding:
    ``y[n, o, i·s + p·d − padding, j·s + q·d − padding] += W[c, o, p, q] · x[n, c, i, j]`` with ``c`` and ``o`` of one
    group, and ``b[o]`` besides. ``H' = (H − 1)·s − 2·padding + d·(k − 1) + output_padding + 1``, or what the call's
    ``output_size`` says. With cotangent ``v``: ``dx`` is the convolution of ``v`` by ``W̄``,
    ``dW[c, o, p, q] = Σ conj(x) · v`` over what met there, ``db = Σ v``.
    Source: the documentation of ``torch.nn.ConvTranspose2d``.
    """

    smooth = True
    overwritable = True
    axes = 2
    in_channels: int
    out_channels: int
    kernel_size: Pair
    stride: Pair = (1, 1)
    padding: Pair = (0, 0)
    output_padding: Pair = (0, 0)
    groups: int = 1
    bias: bool = True
    dilation: Pair = (1, 1)
    padding_mode: str = "zeros"
    output_size: Pair | None = None
    unbatched: bool = False


@dataclass(frozen=True)
class ConvTranspose3d(_Transposed):
    """``nn.ConvTranspose3d``: ``x`` (N, in_channels, D, H, W) to ``y`` of as many axes.

    The formulas of `ConvTranspose2d` on three axes. Source: the documentation of ``torch.nn.ConvTranspose3d``.
    """

    axes = 3
    in_channels: int
    out_channels: int
    kernel_size: Triple
    stride: Triple = (1, 1, 1)
    padding: Triple = (0, 0, 0)
    output_padding: Triple = (0, 0, 0)
    groups: int = 1
    bias: bool = True
    dilation: Triple = (1, 1, 1)
    padding_mode: str = "zeros"
    output_size: Triple | None = None
    unbatched: bool = False
