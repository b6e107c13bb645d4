"""Of which dtype is the result of a step? Torch's rules of type promotion, for the floating and complex dtypes.

Source: the documentation of torch's tensor attributes, 'type promotion': tensors without dimensions count only where
no other is of their kind, and two 16-bit types meet in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

_ORDER = ("float16", "bfloat16", "float32", "float64")
REAL = {"complex64": "float32", "complex128": "float64"}
COMPLEX = {**{real: name for name, real in REAL.items()}, "bfloat16": "complex64"}
"""What a complex result is in; torch has complex32 beside float16, and hardly a step that computes with it."""
FLOATING = (*_ORDER, *REAL)


@cache
def promoted(dtypes: tuple[str, ...]) -> str:
    """The floating dtype that ``dtypes`` promote to."""
    reals = {REAL.get(dtype, dtype) for dtype in dtypes}
    real = "float32" if reals == {"float16", "bfloat16"} else max(reals, key=_ORDER.index)
    return COMPLEX[real] if any(dtype in REAL for dtype in dtypes) else real


def result_dtype(operands: Sequence[tuple[str, int]], kind: str) -> str:
    """The dtype of a result of NumPy's ``kind``, for operands of such dtypes and numbers of dimensions."""
    if kind in "biu":
        return "bool" if kind == "b" else "int64"
    floating = [(dtype, rank) for dtype, rank in operands if dtype in FLOATING]
    common = promoted(tuple(dtype for dtype, rank in floating if rank) or tuple(dtype for dtype, _ in floating))
    if kind == "c":
        return common if common in REAL else COMPLEX[common]
    return REAL.get(common, common)
