"""Connectionist temporal classification: what all alignments of a target to a time series lose together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from hypothesis import strategies as st

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.loss import REDUCTIONS, _Loss
from hookcheck.topology.primitive import Array, Arrays, Gradients, Layer, Operand, Shape
from hookcheck.topology.tree import Literal, Pack, Tree


@dataclass(frozen=True)
class CTCLoss(_Loss):
    """``nn.CTCLoss``: log probabilities ``x`` (T, N, C) and labels ``y`` (N, S), or one after another, to losses (N,).

    For a sample, ``Z`` is the sum over all paths (a class at each of its times) that give its labels when repeats are
    merged and blanks then left out, of the path's probability. ``L = −ln Z + Σ_t (Σ_c exp x_tc − 1)``: the second sum
    is 0, as ``x`` are logarithms of probabilities, but its slope is not, and torch's gradient has it:
    ``dx_tc = v (exp x_tc − γ_tc)``, where ``γ`` is the share that paths through ``c`` at ``t`` have in ``Z``. That is
    the derivative with respect to logits, which passes unchanged through the logarithm of softmax; ``x`` that is no
    such logarithm is not supported (github.com/pytorch/pytorch/issues/52241). The loss and gradient of a sample
    without a path are 0 with ``zero_infinity``. The mean divides each loss by its number of labels (at least 1) first.
    Source: Graves et al. 2006, equations 6 to 16; the documentation of ``torch.nn.CTCLoss``.
    """

    keywords = ("log_probs", "targets", "input_lengths", "target_lengths")
    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False
    input_lengths: tuple[int, ...] = ()
    target_lengths: tuple[int, ...] = ()
    scalable: ClassVar[bool] = False
    usage: ClassVar[tuple[str, ...]] = ("input_lengths", "target_lengths")

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(T, N, C), at least one class besides the blank."""
        return len(shape) == 3 and all(shape) and shape[2] > 1

    @classmethod
    def fitting(cls, draw: st.DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """Labels on one side of the blank that fit into the time even if all are alike, or ``zero_infinity``."""
        steps, samples, classes = shape
        blank, zero_infinity = draw(st.integers(0, classes - 1)), draw(st.booleans())
        ends = draw(st.tuples(*[st.integers(1, steps)] * samples))
        most = [steps if zero_infinity else (end + 1) // 2 for end in ends]
        lengths = draw(st.tuples(st.integers(1, most[0]), *[st.integers(0, m) for m in most[1:]]))
        layer = cls(blank, draw(REDUCTIONS), zero_infinity, ends, lengths)
        padded, joined = (samples, max(lengths)), (sum(lengths),)
        labels = Operand(draw(st.sampled_from([padded, joined])), *(("index", blank) if blank else ("label", classes)))
        return layer, (Operand(shape, "log_probability"), labels)

    def call(self, operands: tuple[Tree, ...]) -> tuple[tuple[Tree, ...], tuple[tuple[str, Tree], ...]]:
        """The tensors, then the lengths of every sample's input and target."""
        lengths = (Pack("tuple", tuple(map(Literal, n))) for n in (self.input_lengths, self.target_lengths))
        return (*operands, *lengths), ()

    def extent(self, inputs: Arrays) -> Shape:
        """(N,)."""
        return (inputs[0].shape[1],)

    def value(self, x: Array, y: Array) -> Array:
        """``L``, and for the mean ``L`` over the number of labels."""
        return np.array([self._sample(*sample)[0] for sample in self._samples(x, y)], x.dtype) * self._shares(x.dtype)

    def pull(self, v: Array, x: Array, y: Array) -> Gradients:
        """``v (exp x − γ)`` within each sample's time and 0 after it; None for the labels."""
        dx = np.zeros_like(x)
        for n, sample in enumerate(self._samples(x, y)):
            dx[: self.input_lengths[n], n] = self._sample(*sample)[1]
        return dx * (v * self._shares(v.dtype))[:, None], None

    def _finite(self, inputs: Arrays) -> Array:
        """Whether each sample has a path."""
        bare = replace(self, zero_infinity=False)
        return np.array([np.isfinite(bare._sample(*sample)[0]) for sample in self._samples(*inputs)])

    def _shares(self, dtype: Any) -> Array:
        """What each sample's loss is multiplied by before the mean over samples."""
        return np.array([1 / max(n, 1) if self.reduction == "mean" else 1.0 for n in self.target_lengths], dtype)

    def _samples(self, x: Array, y: Array) -> list[tuple[Array, Array]]:
        """Each sample's log probabilities (its time, C) and labels."""
        starts = np.cumsum((0, *self.target_lengths)) if y.ndim == 1 else range(y.size + 1)[:: y.shape[1]]
        return [
            (x[:end, n], y.reshape(-1)[start : start + count])
            for n, (end, start, count) in enumerate(zip(self.input_lengths, starts, self.target_lengths))
        ]

    def _sample(self, x: Array, labels: Array) -> tuple[float, Array]:
        """``L`` of a sample and its gradient (time, C)."""
        path = np.full(2 * len(labels) + 1, self.blank)
        path[1::2] = labels
        emitted = x[:, path]
        before, after = self._prefixes(emitted, path), self._prefixes(emitted[::-1, ::-1], path[::-1])[::-1, ::-1]
        total = np.logaddexp.reduce(before[-1, -2:])
        if np.isneginf(total):
            return (0.0 if self.zero_infinity else np.inf), np.zeros_like(x)
        shares = np.exp(before + after - emitted - total) @ (path[:, None] == np.arange(x.shape[1]))
        return float(np.exp(x).sum() - len(x) - total), np.exp(x) - shares

    def _prefixes(self, emitted: Array, path: Array) -> Array:
        """The log probability of all ways to each place of ``path`` by each time: one place on, or two over a blank."""
        logs = np.full_like(emitted, -np.inf)
        logs[0, :2] = emitted[0, :2]
        over = np.flatnonzero((path[2:] != self.blank) & (path[2:] != path[:-2])) + 2
        for t in range(1, len(emitted)):
            logs[t] = logs[t - 1]
            logs[t, 1:] = np.logaddexp(logs[t, 1:], logs[t - 1, :-1])
            logs[t, over] = np.logaddexp(logs[t, over], logs[t - 1, over - 2])
            logs[t] += emitted[t]
        return logs

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """The mean or sum of the losses; of the losses themselves the choice of a number or 0, or the whole."""
        if self.reduction != "none":
            return super().last_node(step)
        return ((None, step.inner(step.v * self._finite(step.inputs))),) if self.zero_infinity else (step.each,)
