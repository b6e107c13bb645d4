"""What DataParallel and DistributedDataParallel do with hooks.

DataParallel calls the hooks of a module on every device; DistributedDataParallel leaves them as they are, and has
communication hooks of its own, ``hook(state, bucket)``, that reduce the gradients.
"""

from __future__ import annotations

from hookcheck.contract.programs import parallel as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
