"""How far may torch's numbers lie from the oracle's? One table, with the reason for every figure in it.

The oracle computes in float64; torch rounds at each step to the tensor's own dtype. A gradient is a chain of sums of at
most ``2**8`` products (the largest contraction that the families draw) over at most ``2**2`` layers whose intermediate
terms are at most ``2**2`` times as large as what is left after cancellation. By the usual bound ``|error| <= n u
Σ|terms|`` (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1) that gives ``2**12`` units of rounding,
relative to the largest number of the tensor. Inputs are exact in every dtype, so nothing is lost on the way in. The
16-bit types are summed in float32 and rounded once a step, so of the chain only its ``2**2`` layers and its ``2**2`` of
cancellation remain.

Where a network amplifies rounding more than that (a normalisation of nearly equal numbers), or decides by it (a maximum
of two equal ones), `hookcheck.oracle.rounding` measures by how much on the very network.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from hookcheck.oracle.dtypes import REAL
from hookcheck.topology.primitive import Array

STEPS = {"float64": 2.0**12, "float32": 2.0**12, "float16": 2.0**4, "bfloat16": 2.0**4}
"""How many units of rounding a chain of steps may add up to."""

UNIT = {
    ("float64", "cpu"): 2.0**-52,
    ("float64", "cuda"): 2.0**-52,
    ("float32", "cpu"): 2.0**-23,
    ("float32", "cuda"): 2.0**-23,  # a run turns TF32 off, see hookcheck.probe.cuda
    ("float16", "cpu"): 2.0**-10,
    ("float16", "cuda"): 2.0**-10,
    ("bfloat16", "cpu"): 2.0**-7,
    ("bfloat16", "cuda"): 2.0**-7,
}
"""One unit of rounding, by dtype and device."""

DIFFERENCES = 2.0**-20
"""What central differences leave of a number, relative to the largest: gradients of gradients rest on them. Their step
of ``2**-17`` errs by its square times a third derivative of at most ``2**10``, and by rounding over the step."""

STATED = 2.0**6 * UNIT["float32", "cpu"]
"""How far a number of a program may lie from what is stated of it, relative to the larger of it and 1. Programs compute
in float32 with numbers that are worked out by hand: sums of at most ``2**4`` products through at most ``2**2`` calls,
none of which cancel, so of the steps above only these ``2**6`` remain."""


def coarsest(dtypes: Iterable[str]) -> str:
    """That of the floating dtypes (a complex one counts as its parts) which rounds most."""
    reals = {REAL.get(dtype, dtype) for dtype in dtypes} & STEPS.keys()
    return max(reals, key=lambda dtype: UNIT[dtype, "cpu"], default="float64")


def tolerance(expected: Array, dtype: str, device: str, doubled: bool = False) -> float:
    """The largest absolute difference from ``expected`` that rounding explains, by the coarsest dtype and device, or
    that central differences leave where a gradient rests on them (``doubled``)."""
    largest = float(abs(expected).max()) if expected.size else 0.0
    return max(STEPS[dtype] * UNIT[dtype, device], DIFFERENCES if doubled else 0.0) * max(1.0, largest)


def close(observed: Array, expected: Array, dtype: str, device: str, doubled: bool = False) -> bool:
    """Whether two arrays have one shape and differ by no more than the `tolerance`.

    What is infinite or NaN in ``expected`` must be just that in ``observed``, and nothing else may be.
    """
    if observed.shape != expected.shape:
        return False
    finite = np.isfinite(expected)
    if not finite.all():
        others = np.array_equal(observed[~finite], expected[~finite], equal_nan=True)
        return others and close(observed[finite], expected[finite], dtype, device, doubled)
    if not expected.size:
        return True
    return bool(abs(observed - expected).max() <= tolerance(expected, dtype, device, doubled))


def within(observed: Array, expected: Array, bound: Array | float) -> bool:
    """Whether no number is further from ``expected`` than ``bound``: what rounding was measured to do to it."""
    return bool(np.all(np.abs(observed - expected) <= bound))


def as_stated(observed: float, stated: float) -> bool:
    """Whether a number of a program is the one that is stated of it, up to `STATED`; infinities and NaN exactly."""
    if not (math.isfinite(observed) and math.isfinite(stated)):
        return observed == stated or (math.isnan(observed) and math.isnan(stated))
    return abs(observed - stated) <= STATED * max(1.0, abs(stated))


def assert_close(observed: Any, expected: Any, dtype: str = "float64", doubled: bool = False) -> None:
    """Hold numbers that were computed on the processor to those that they must be, as `close` does.

    Takes arrays and what numpy makes arrays of: numbers, nested lists, tensors that need no gradient.

    Raises:
        AssertionError: the shapes differ, or a number differs by more than the `tolerance`; the text gives both.
    """
    arrays = map(np.asarray, (observed, expected))
    one, other = (array.astype(np.result_type(array, np.float64)) for array in arrays)
    if one.shape != other.shape:
        raise AssertionError(f"shape {one.shape} instead of {other.shape}:\n{one}\ninstead of\n{other}")
    if not close(one, other, dtype, "cpu", doubled):
        with np.errstate(invalid="ignore"):
            furthest, bound = abs(one - other).max(), tolerance(other, dtype, "cpu", doubled)
        raise AssertionError(f"{furthest:.3g} apart, with {bound:.3g} allowed:\n{one}\ninstead of\n{other}")
