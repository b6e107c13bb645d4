"""What autograd logs of what it executes, by hooks of its own.

At the level DEBUG of its logger, `torch.autograd.graph`, each backward puts a pre-hook on every Node that it can reach,
and takes them off when it ends.
"""

from __future__ import annotations

from hookcheck.contract.programs import autograd_logging as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
