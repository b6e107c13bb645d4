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

Noise = Callable[[Array, bool], Array]
"""What moves an array; the flag says whether its zeros are exact, and so stay."""

TRIALS = 3
"""How many times the network is worked out again."""

MARGIN = 2.0**5
"""How many times the largest change seen may be exceeded: a few trials do not show the worst of the directions."""


def noise(trial: int, dtype: str, device: str) -> Noise:
    """Moves the numbers of a floating array by up to four units of rounding, the same way each time.

    The units are those of its largest number, as sums leave them; where zeros are exact, those of each number itself.
    """
    stream = np.random.RandomState(trial)
    unit = 4 * UNIT[dtype, device]

    def moved(array: Array, exact: bool) -> Array:
        if array.dtype.kind not in "fc" or not array.size:
            return array
        size = np.abs(array) if exact else np.abs(array).max()
        changed: Array = array + unit * size * stream.uniform(-1, 1, size=array.shape)
        return changed

    return moved
