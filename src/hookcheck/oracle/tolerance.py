"""How far may torch's numbers lie from the oracle's? One table, with the reason for every figure in it.

The oracle computes in float64; torch rounds at each step to the tensor's own dtype. A gradient is a chain of sums of at
most ``2**8`` products (the largest contraction that the families draw) over at most ``2**2`` layers whose intermediate
terms are at most ``2**2`` times as large as what is left after cancellation. By the usual bound ``|error| <= n u
Σ|terms|`` (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1) that gives ``2**12`` units of rounding,
relative to the largest number of the tensor. Values are drawn as multiples of 1/8, so nothing is lost on the way in.
"""

from __future__ import annotations

from hookcheck.topology.model import Array

_STEPS = 2.0**12

UNIT = {
    ("float64", "cpu"): 2.0**-52,
    ("float64", "cuda"): 2.0**-52,
    ("float32", "cpu"): 2.0**-23,
    # Convolutions on CUDA multiply in TF32 by default: 10 explicit bits of mantissa (notes on CUDA, TensorFloat-32),
    # rounded once a product and summed in float32, so the steps above count for little: 2**6 units of 2**-10 in all.
    ("float32", "cuda"): 2.0**-16,
}
"""One unit of rounding, by dtype and device."""


def tolerance(expected: Array, dtype: str, device: str) -> float:
    """The largest absolute difference from ``expected`` that rounding explains, by dtype and device."""
    largest = float(abs(expected).max()) if expected.size else 0.0
    return _STEPS * UNIT[dtype, device] * max(1.0, largest)


def close(observed: Array, expected: Array, dtype: str, device: str) -> bool:
    """Whether two arrays have one shape and differ by no more than rounding explains; NaN is never close."""
    if observed.shape != expected.shape:
        return False
    if not expected.size:
        return True
    return bool(abs(observed - expected).max() <= tolerance(expected, dtype, device))
