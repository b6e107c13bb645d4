"""How much of a difference is rounding on this very network? Asked only where the table of tolerances says no.

The oracle works the network out again with every intermediate number off by a few units of rounding, at random: what
then changes in a gradient is what torch, which rounds there too, may be off by. Source: the backward error of Higham,
Accuracy and Stability of Numerical Algorithms, section 1.5, with the sensitivity measured instead of bounded.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hookcheck.oracle.tolerance import UNIT
from hookcheck.topology.model import Array

Noise = Callable[[Array], Array]

TRIALS = 3
"""How many times the network is worked out again."""

MARGIN = 2.0**5
"""How many times the largest change seen may be exceeded: a few trials do not show the worst of the directions."""


def noise(trial: int, dtype: str, device: str) -> Noise:
    """Moves the numbers of a floating array by up to four units of rounding of its largest, the same way each time."""
    stream = np.random.RandomState(trial)
    unit = 4 * UNIT[dtype, device]

    def moved(array: Array) -> Array:
        if array.dtype.kind not in "fc" or not array.size:
            return array
        changed: Array = array + unit * np.abs(array).max() * stream.uniform(-1, 1, size=array.shape)
        return changed

    return moved
