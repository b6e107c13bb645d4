"""How much of a difference is rounding on this very network? Asked only where the table of tolerances says no.

The oracle works the network out again with every intermediate number off by a few units of rounding, at random: what
then changes in a gradient is what torch, which rounds there too, may be off by. Source: the backward error of Higham,
Accuracy and Stability of Numerical Algorithms, section 1.5, with the sensitivity measured instead of bounded.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hookcheck.oracle.tolerance import UNIT
from hookcheck.topology.primitive import Array

Noise = Callable[..., Array]
"""What moves an array; the flag says whether its zeros are exact, and so stay, the number how large what cancelled
within the step was (see `cancelled`)."""

TRIALS = 3
"""How many times the network is worked out again."""

NOISE = {"float64": 4.0, "float32": 4.0, "float16": 1.0, "bfloat16": 1.0}
"""By how many units of rounding a number moves: the sums within a step round several times in the wide types, and are
rounded once to the 16-bit ones."""

MARGIN = {"float64": 2.0**5, "float32": 2.0**5, "float16": 2.0**2, "bfloat16": 2.0**2}
"""How many times the largest change seen may be exceeded: a few trials do not show the worst of the directions.
Networks of 16 bits are drawn with few steps, and so with few directions."""


JUMP = 2.0**-10
"""What a step loses in float32 beyond this part of what it receives is no rounding: it went another way at a kink."""


def cancelled(exact: Array, single: Array, received: float) -> float:
    """How large the numbers were that cancelled within a step: what it loses in float32, in units of rounding.

    No change of a step's operands shows that, where the step cancels them whatever they are (LayerNorm over two).
    ``received`` is the largest number of the gradients that it is given.
    """
    lost = np.abs(single - exact)
    most = float(lost[np.isfinite(lost)].max(initial=0))
    return most / UNIT["float32", "cpu"] if most <= JUMP * received else 0.0


def noise(trial: int, dtype: str, device: str) -> Noise:
    """Moves the numbers of a floating array by up to `NOISE` units of rounding, the same way each time.

    The units are those of its largest number, as sums leave them; where zeros are exact, those of each number itself.
    """
    stream = np.random.RandomState(trial)
    unit = NOISE[dtype] * UNIT[dtype, device]

    def moved(array: Array, exact: bool, within: float = 0.0) -> Array:
        if array.dtype.kind not in "fc" or not array.size:
            return array
        size = np.abs(array) if exact else max(np.abs(array).max(), within / NOISE[dtype])
        changed: Array = array + unit * size * stream.uniform(-1, 1, size=array.shape)
        return changed

    return moved
