"""What hooks do in programs of several threads.

Threads may run forward and backward at once through one module, each on a graph of its own. A hook belongs to the
module, tensor or process that it was registered on, and runs in every thread; grad mode and the context of hooks for
saved tensors belong to the thread.
"""

from __future__ import annotations

from hookcheck.contract.programs import threads as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
