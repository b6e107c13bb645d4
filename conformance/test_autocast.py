"""What hooks see under automatic mixed precision.

Within ``torch.autocast(device, dtype=torch.bfloat16)`` a linear layer casts its input and its weight and computes in
bfloat16. A hook sees each tensor as it is: inputs as they were given, outputs in bfloat16, and each gradient in the
dtype of what it is the gradient of. Backward runs outside of the region, its operations in the dtype of forward's.
"""

from __future__ import annotations

from hookcheck.contract.programs import autocast as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
