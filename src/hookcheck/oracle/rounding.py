"""How much of a difference is rounding on this very network? Asked only where the table of tolerances says no.

The oracle works the network out again with every intermediate number off by a few units of rounding, at random: what
then changes in a gradient is what torch, which rounds there too, may be off by. Source: the backward error of Higham,
Accuracy and Stability of Numerical Algorithms, section 1.5, with the sensitivity measured instead of bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count

import numpy as np

from hookcheck.oracle.gradient import Gradient
from hookcheck.oracle.tolerance import UNIT
from hookcheck.topology.primitive import Array

TRIALS = 12
"""How many times the network is worked out again: of two ways at a kink, each number goes the other one in half of
them, and some tensors have dozens."""

NOISE = {"float64": 4.0, "float32": 4.0, "float16": 1.0, "bfloat16": 1.0}
"""By how many units of rounding a number moves: the sums within a step round several times in the wide types, and are
rounded once to the 16-bit ones."""

UNDERFLOW = {"float64": 2.0**-1022, "float32": 2.0**-126, "float16": 2.0**-24, "bfloat16": 2.0**-126}
"""Smaller numbers may come out as zero: kernels flush what is no normal number. Those for float16 compute in float32,
and round to a multiple of this. Source: the model with underflow of Higham, section 2.2."""

MARGIN = {"float64": 2.0**5, "float32": 2.0**5, "float16": 2.0**2, "bfloat16": 2.0**2}
"""How many times the largest change seen may be exceeded: a few trials do not show the worst of the directions.
Networks of 16 bits are drawn with few steps, and so with few directions."""

NARROWINGS = 16
"""How many times a step is worked out in float32: one that cancels by chance loses nothing in four of five (the cosine
of two single numbers)."""

SPREAD = 2.0**-12
"""By what part of itself each number differs from one of these times to the next: all its lower bits do."""

JUMP = 2.0**-4
"""What a step loses in float32 beyond this part of what it receives is no rounding: it went another way at a kink."""


Step = Callable[[tuple[Array, ...]], Sequence[Gradient]]
"""What a step gives for the arrays that it is given: forward its outputs, backward the gradients of its operands."""


class Noise:
    """Moves numbers as rounding does, at random, the same way each time for one ``trial``."""

    def __init__(self, trial: int, dtype: str, device: str, sizes: dict[int, list[float]]) -> None:
        """``dtype`` is the coarsest of the network, ``device`` that on which torch runs it.

        ``sizes`` holds what cancels within each step, in the order in which they come in every trial; the first trial
        fills it for the others.
        """
        self._stream = np.random.RandomState(trial)
        self._sizes = sizes
        self._steps = count()
        self._times = NOISE[dtype]
        self._unit = NOISE[dtype] * UNIT[dtype, device]
        self._least = NOISE[dtype] * UNDERFLOW[dtype]

    def moved(self, array: Array, exact: bool, within: float = 0.0) -> Array:
        """The numbers of a floating array, off by up to `NOISE` units of rounding.

        The units are those of its largest number, or of the numbers ``within`` the step that `cancelled`, as sums leave
        them; where zeros are ``exact``, and so stay, those of each number itself. To that comes, for any but zero, what
        may underflow: a number of that size falls to the other side of a kink at zero as often as not.
        """
        if array.dtype.kind not in "fc" or not array.size:
            return array
        size = np.abs(array) if exact else max(np.abs(array).max(), within / self._times)
        most = self._unit * size + self._least * (array != 0)
        changed: Array = array + most * self._stream.uniform(-1, 1, size=array.shape)
        return changed

    def cancelled(self, step: Step, given: tuple[Array, ...], received: Iterable[Gradient]) -> list[float]:
        """For each result of a step, how large the numbers were that cancelled within: what it loses in float32, in
        units of rounding.

        No change of what it is ``given`` shows that, where the step cancels it whatever it is (LayerNorm over two).
        Of what it ``received`` the largest number says what is too much for rounding.
        """
        number = next(self._steps)
        if number not in self._sizes:
            self._sizes[number] = self._measured(step, given, received)
        return self._sizes[number]

    def _measured(self, step: Step, given: tuple[Array, ...], received: Iterable[Gradient]) -> list[float]:
        largest = max((float(np.abs(a).max(initial=0)) for a in received if a is not None), default=0.0)
        sizes = []
        for _ in range(NARROWINGS):
            narrow = tuple(map(self._narrowed, given))
            single, exact = step(narrow), step(tuple(map(_widened, narrow)))
            sizes.append([_lost(s, e, largest) for s, e in zip(single, exact)])
        return [max(of_one) for of_one in zip(*sizes)]

    def _narrowed(self, array: Array) -> Array:
        """A real array in float32, each number off by up to `SPREAD`; another one as it is."""
        if array.dtype.kind != "f":
            return array
        off = SPREAD * self._stream.uniform(-1, 1, size=array.shape)
        return np.asarray(array * (1 + off), dtype=np.float32)


def _widened(array: Array) -> Array:
    """One in float32 in float64, number for number; another one as it is."""
    return array.astype(np.float64) if array.dtype == np.float32 else array


def _lost(single: Gradient, exact: Gradient, received: float) -> float:
    """What float32 loses, in units of rounding, if that is rounding."""
    if single is None or exact is None:
        return 0.0
    lost = np.abs(single - exact)
    most = float(lost[np.isfinite(lost)].max(initial=0))
    return most / UNIT["float32", "cpu"] if most <= JUMP * received else 0.0
