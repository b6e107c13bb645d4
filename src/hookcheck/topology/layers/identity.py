"""The layer that does nothing, and that every dropout is in eval mode."""

from __future__ import annotations

from dataclasses import dataclass

from hookcheck.topology.layers.unary import Unary
from hookcheck.topology.primitive import Array


@dataclass(frozen=True)
class Identity(Unary):
    """``nn.Identity``: ``y`` is ``x`` itself, ``dx = v``. Source: the documentation of ``torch.nn.Identity``."""

    complex_since = "1.8"
    passes = True

    def value(self, x: Array) -> Array:
        """``x``."""
        return x

    def pull(self, v: Array, x: Array) -> Array:
        """``v``."""
        return v
