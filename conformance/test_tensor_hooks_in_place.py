"""What hooks on a tensor do that is changed in place.

A change in place gives a tensor a new value and a new ``grad_fn``. Hooks that were registered before it belong to the
value before, those registered after it to the value after.
"""

from __future__ import annotations

from hookcheck.contract.programs import tensor_hooks_in_place as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
