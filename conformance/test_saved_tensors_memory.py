"""What is kept of the tensors that autograd saves for backward, and where.

Within ``saved_tensors_hooks(pack, unpack)`` the graph keeps what ``pack`` returns and nothing else; ``save_on_cpu`` is
such a pair that keeps copies in the memory of the CPU.
"""

from __future__ import annotations

from hookcheck.contract.programs import saved_tensors_memory as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
