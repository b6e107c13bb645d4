"""Dropouts whose mask is known beforehand: in training all is kept (p = 0), or all is dropped (p = 1), or what is kept
is drawn with the network.

With p = 0, and in eval mode with any p, torch gives back the very tensor that it was given, the in-place forms too.
With p = 1 it multiplies by zero. Between them torch draws the mask m of ones and zeros from its generator; a layer that
says what it ``keeps`` is built as a subclass that sets the generator to a seed which leads to just that mask.
Sources: the documentation of each class; Klambauer et al., 'Self-Normalizing Neural Networks' (arXiv:1706.02515),
section 3, for the affine of the alpha dropouts; torch's aten/src/ATen/native/Dropout.cpp for p = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod, sqrt
from typing import Any, ClassVar

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.layers.identity import Identity
from hookcheck.topology.layers.unary import Unary
from hookcheck.topology.primitive import Array, Layer, Operand, Primitive, Shape

MOST_UNITS = 6
"""The most units that a mask is drawn for: with p = 0.5 and n units one seed in 2ⁿ leads to it."""

NEGATIVE = -1.7580993408473766
"""α' of the alpha dropouts, what SELU tends to below: −λ α."""

MASKED = '''\
class Masked:
    """A dropout that keeps in training just what it is told to: it starts from a seed that leads to that mask."""

    seeds = {}

    def __init__(self, keeps, **settings):
        super().__init__(**settings)
        self.keeps = keeps

    def forward(self, input):
        if not self.training:
            return super().forward(input)
        generator = torch.cuda.default_generators[input.device.index] if input.is_cuda else torch.default_generator
        state = generator.get_state()
        try:
            generator.manual_seed(self.seed(input, generator))
            return super().forward(input)
        finally:
            generator.set_state(state)

    def seed(self, x, generator):
        """The first seed that leads to the mask; which mask it leads to depends on how x lies in memory, too."""
        layout = (x.shape, x.stride(), x.storage_offset())
        key = (type(self), self.p, self.inplace, self.keeps, layout, x.dtype, x.device)
        if key not in self.seeds:
            self.seeds[key] = self.search(generator, layout, x.dtype, x.device)
        return self.seeds[key]

    @torch.no_grad()
    def search(self, generator, layout, dtype, device):
        shape, strides, offset = layout
        extent = offset + 1 + sum((n - 1) * stride for n, stride in zip(shape, strides))
        mask = [keep for keep in self.keeps for _ in range(shape.numel() // len(self.keeps))]
        tries = round(64 * min(self.p, 1 - self.p) ** -len(self.keeps))
        for seed in range(tries):
            generator.manual_seed(seed)
            ones = torch.ones(extent, dtype=dtype, device=device).as_strided(*layout)
            if [y.real > 0 for y in super().forward(ones).flatten().tolist()] == mask:
                return seed
        raise ValueError(f"no seed below {tries} makes {self} keep {self.keeps} of shape {tuple(shape)}")'''
"""What a dropout with a mask derives from besides torch's class, as the text of a program. Of ones torch makes positive
numbers where it keeps them, and zeros or (alpha dropouts) negative ones where not."""


class _Dropout(Unary):
    dimensions: ClassVar[int | None] = None
    p: float
    keeps: tuple[bool, ...]

    @property
    def complex_since(self) -> str:
        """All that is done is a product with a scalar; complex tensors could have no mask before (pytorch#195373)."""
        return "2.15" if self.keeps else "1.9"

    @property
    def passes(self) -> bool:
        """Whether nothing is ever dropped."""
        return self.p == 0

    @property
    def writes(self) -> bool:
        """Whether ``inplace`` is set and there is something to write."""
        return super().writes and not self.passes

    @property
    def exact(self) -> bool:
        """Numbers are scaled or put to zero."""
        return True

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """The documented batched shape; an empty tensor would be passed on whatever ``p`` is."""
        return all(shape) and cls.dimensions in (None, len(shape))

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """p of 0 or 1; or 0.5 with a mask, where it is of no more than `MOST_UNITS`."""
        kind: Any = cls
        units = prod(shape[:2] if cls.dimensions else shape)
        p = draw(st.sampled_from([0.0, 1.0, 0.5] if units <= MOST_UNITS else [0.0, 1.0]))
        inplace = draw(st.booleans())
        keeps = draw(st.tuples(*[st.sampled_from([True, False])] * units)) if p == 0.5 else ()
        return kind(p, inplace, keeps), (Operand(shape),)

    def source(self) -> str:
        """The constructor call: of torch's class, or of that in `definitions`."""
        return constructor(self).replace("nn.", "Masked" if self.keeps else "nn.", 1)

    def definitions(self) -> tuple[str, ...]:
        """The class with a mask, and what it derives from."""
        kind = type(self).__name__
        return (MASKED, f"class Masked{kind}(Masked, nn.{kind}):\n    pass") if self.keeps else ()

    def evaluated(self) -> Primitive:
        """The identity."""
        return Identity()

    def value(self, x: Array) -> Array:
        """``m x`` times the `factor`."""
        return x * self.mask(x) * self.factor

    def pull(self, v: Array, x: Array) -> Array:
        """``m v`` times the `factor`."""
        return v * self.mask(x) * self.factor

    @property
    def factor(self) -> float:
        """``1 / (1 − p)``; for p = 1, where there is nothing to scale, 1."""
        return 1 / (1 - self.p) if self.p < 1 else 1.0

    def mask(self, x: Array) -> Array:
        """``m``, of the shape of ``x``: 1 for all of a unit that is kept, 0 for all of one that is dropped."""
        if not self.keeps and self.p not in (0, 1):
            raise ValueError(f"what a dropout with p={self.p} keeps in training is random; take p=0.0, p=1.0 or a mask")
        keeps = self.keeps or (self.p == 0,)
        return np.repeat(keeps, x.size // len(keeps)).reshape(x.shape).astype(x.dtype)

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """A product with the mask, or with a zero for all."""
        return ((step.of(0), None),)


@dataclass(frozen=True)
class Dropout(_Dropout):
    """``nn.Dropout``: ``x`` of any shape; ``y = m x / (1 − p)`` and ``dx = m v / (1 − p)``, element by element.

    Source: the documentation of ``torch.nn.Dropout``: elements are zeroed with probability p, the rest is scaled by
    1 / (1 − p).
    """

    rounded_once = True

    p: float = 0.5
    inplace: bool = False
    keeps: tuple[bool, ...] = ()


@dataclass(frozen=True)
class Dropout1d(_Dropout):
    """``nn.Dropout1d``: ``x`` (N, C, L); as `Dropout`, with one m for a whole channel.

    Source: the documentation of ``torch.nn.Dropout1d``.
    """

    dimensions = 3
    since = "1.12"
    p: float = 0.5
    inplace: bool = False
    keeps: tuple[bool, ...] = ()


@dataclass(frozen=True)
class Dropout2d(_Dropout):
    """``nn.Dropout2d``: ``x`` (N, C, H, W); as `Dropout`, with one m for a whole channel.

    Source: the documentation of ``torch.nn.Dropout2d``.
    """

    dimensions = 4
    p: float = 0.5
    inplace: bool = False
    keeps: tuple[bool, ...] = ()


@dataclass(frozen=True)
class Dropout3d(_Dropout):
    """``nn.Dropout3d``: ``x`` (N, C, D, H, W); as `Dropout`, with one m for a whole channel.

    Source: the documentation of ``torch.nn.Dropout3d``.
    """

    dimensions = 5
    p: float = 0.5
    inplace: bool = False
    keeps: tuple[bool, ...] = ()


class _AlphaDropout(_Dropout):
    writes = False  # the modules take ``inplace``, and do not hand it on to the function that they call

    @property
    def exact(self) -> bool:
        """What is dropped is no zero, save for p = 1."""
        return not self.keeps

    @property
    def factor(self) -> float:
        """``a = (q + α'² q (1 − q))^(−1/2)`` with ``q = 1 − p``; for p = 1, where that is not finite, 1."""
        q = 1 - self.p
        return 1 / sqrt(q + NEGATIVE**2 * q * self.p) if q else 1.0

    def value(self, x: Array) -> Array:
        """``a (m x + α' (1 − m)) + b`` with ``b = −a α' p``."""
        return super().value(x) + (1 - self.mask(x) - self.p) * NEGATIVE * self.factor

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """With a mask, the addition of what stands for what is dropped."""
        return ((step.inner(step.v), None),) if self.keeps else super().last_node(step)


@dataclass(frozen=True)
class AlphaDropout(_AlphaDropout):
    """``nn.AlphaDropout``: ``x`` of any shape; ``y = a (m x + α' (1 − m)) + b`` and ``dx = a m v``.

    Here ``a`` and ``b`` keep mean and variance: ``a = (q + α'² q (1 − q))^(−1/2)`` with ``q = 1 − p``, ``b = −a α' p``.
    For p = 1 there is no finite ``a``; torch multiplies by zero.
    Source: the documentation of ``torch.nn.AlphaDropout``; Klambauer et al., section 3.
    """

    p: float = 0.5
    inplace: bool = False
    keeps: tuple[bool, ...] = ()


@dataclass(frozen=True)
class FeatureAlphaDropout(_AlphaDropout):
    """``nn.FeatureAlphaDropout``: ``x`` (N, C, D, H, W); as `AlphaDropout`, with one m for a whole channel.

    Source: the documentation of ``torch.nn.FeatureAlphaDropout``.
    """

    dimensions = 5
    p: float = 0.5
    inplace: bool = False
    keeps: tuple[bool, ...] = ()
