"""What comes of results that a backward hook should not return.

The documentation names tuples of gradients and None. Tuples of a wrong length, of tensors of a wrong shape or dtype,
bare tensors, numbers and texts are refused; None in a tuple has a meaning that libraries rely on.
"""

from __future__ import annotations

from hookcheck.contract.programs import backward_hook_results as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
