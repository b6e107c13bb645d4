"""What holds where tensors that were saved for backward are changed in place.

Within ``allow_mutation_on_saved_tensors`` a pair of hooks for saved tensors notes what is saved, and each operation
that is about to write to such a tensor has it cloned first; without it, the backward that needs the tensor is an error.
"""

from __future__ import annotations

from hookcheck.contract.programs import saved_tensor_mutation as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
