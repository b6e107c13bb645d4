"""How is a gradient written into a script? As its numbers; where there is more to say of it, as a dict that says it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from hookcheck.hooks.acts import Acts
from hookcheck.oracle.expected import Expected
from hookcheck.oracle.gradient import Gradient
from hookcheck.oracle.tolerance import DIFFERENCES, tolerance
from hookcheck.topology.model import Topology
from hookcheck.topology.primitive import Array
from hookcheck.topology.values import values

Entry = Any
"""Nested lists of numbers, for a tensor of the network's dtype; None for a gradient that is absent; or a dict of
``numbers`` and, where they are needed, ``dtype`` (that of the tensor), ``shape`` (which the numbers of an empty one do
not show), ``within`` (how far each number may be off) and ``or None`` (where None is right as well)."""


def odd(rows: Iterable[Any]) -> bool:
    """Whether any gradient in ``rows``, or in the tuples that they are, is a dict."""
    return any(isinstance(part, dict) or (isinstance(part, tuple) and odd(part)) for part in rows)


@lru_cache(maxsize=16)
def gradients_of(topology: Topology, device: str, acts: Acts) -> Gradients:
    """The gradients of a network, worked out once for all hook kinds that act alike."""
    return Gradients(Expected(topology, values(topology), acts=acts), device)


class Gradients:
    """The gradients of one network, and how far torch may be off on it."""

    def __init__(self, expected: Expected, device: str) -> None:
        """``device`` is ``cpu`` or ``cuda``; rounding differs."""
        self.expected = expected
        self.device = device

    @cached_property
    def tolerance(self) -> float:
        """The largest difference that rounding explains where no number of a tensor is larger than 1."""
        table = tolerance(np.zeros(1), self.expected.dtype, self.device)
        return max(table, DIFFERENCES) if self.expected.trace.doubled else table

    @cached_property
    def _known(self) -> frozenset[int]:
        """The arrays of which the oracle can say what rounding does to them, by ``id``."""
        return frozenset(map(id, self.expected.arrays))

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
        """How far each number may be off, if the network amplifies rounding beyond the table (`Expected.allowance`)."""
        if id(gradient) not in self._known:
            return None
        slack = self.tolerance * max(1.0, float(abs(gradient).max(initial=0)))
        allowed = self.expected.allowance(gradient, self.device)
        if allowed.max(initial=0) <= 4 * slack:  # no more than the table, but for the largest number on the way
            return None
        return np.vectorize(lambda off: float(f"{off:.3g}"))(np.broadcast_to(allowed, gradient.shape)).tolist()
