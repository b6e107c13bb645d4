"""How is a gradient written into a script? As its numbers; where there is more to say of it, as a dict that says it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from hookcheck.oracle.expected import Expected
from hookcheck.oracle.rounding import MARGIN, TRIALS, noise
from hookcheck.oracle.sweep import Gradient
from hookcheck.topology.model import Array

Entry = Any
"""Nested lists of numbers, for a tensor of the network's dtype; None for a gradient that is absent; or a dict of
``numbers`` and, where they are needed, ``dtype`` (that of the tensor), ``shape`` (which the numbers of an empty one do
not show), ``within`` (how far each number may be off) and ``or None`` (where None is right as well)."""


def odd(rows: Iterable[Any]) -> bool:
    """Whether any gradient in ``rows``, or in the tuples that they are, is a dict."""
    return any(isinstance(part, dict) or (isinstance(part, tuple) and odd(part)) for part in rows)


class Gradients:
    """The gradients of one network, and how far torch may be off on it."""

    def __init__(self, expected: Expected, device: str, tolerance: float) -> None:
        """``tolerance`` is what the table allows where no number of a tensor is larger than 1."""
        self.expected = expected
        self.device = device
        self.tolerance = tolerance

    def entry(self, gradient: Gradient, dtype: str, or_none: bool = False) -> Entry:
        """One of the gradients that the oracle gives, of a tensor of ``dtype``, as a literal."""
        if gradient is None:
            return None
        more = {
            "dtype": dtype if dtype != self.expected.topology.dtype else None,
            "shape": gradient.shape if not gradient.size else None,
            "within": self._within(gradient),
            "or None": or_none or None,
        }
        told = {key: word for key, word in more.items() if word is not None}
        return {"numbers": gradient.tolist(), **told} if told else gradient.tolist()

    def _within(self, gradient: Array) -> Any:
        """How far each number may be off, if the network amplifies rounding beyond the table; see `Expected.close`."""
        slack = self.tolerance * max(1.0, float(abs(gradient).max(initial=0)))
        place = self._places[id(gradient)]
        others = [other for gradients in self._again for other in [gradients[place]] if other is not None]
        measured = MARGIN * np.max([np.abs(other - gradient) for other in others], axis=0) if others else np.zeros(1)
        if measured.max(initial=0) <= slack:
            return None
        return np.vectorize(lambda off: float(f"{off:.3g}"))(slack + measured).tolist()

    @cached_property
    def _places(self) -> dict[int, int]:
        """Where among all a gradient stands, by its ``id``."""
        return {id(gradient): place for place, gradient in enumerate(_all(self.expected))}

    @cached_property
    def _again(self) -> list[list[Gradient]]:
        """All gradients, worked out with rounding at every step."""
        noises = [noise(trial, self.expected.dtype, self.device) for trial in range(TRIALS)]
        return [_all(Expected(self.expected.topology, self.expected.numbers, each)) for each in noises]


def _all(expected: Expected) -> list[Gradient]:
    fired = [g for firing in expected.firings for g in (*firing.grad_input, *firing.grad_output)]
    return [*fired, *(g for _, _, g in expected.of_first_output), *expected.leaf_gradients.values()]
