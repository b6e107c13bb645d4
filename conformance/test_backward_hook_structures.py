"""What full backward hooks do to inputs and outputs of a module, though they only look on.

Objects that are passed through, inputs that are not used, named tuples and other classes of tuples, nested outputs:
each program is a fault that was found in some release.
"""

from __future__ import annotations

from hookcheck.contract.programs import backward_hook_structures as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
