"""Linear, Conv2d, the first activations, and sums and products."""

from __future__ import annotations

IN_JAX = {}
NOT_IN_JAX: dict[type, str] = {}
