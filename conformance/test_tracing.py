"""What torch.jit, torch.fx and torch.export do with hooks.

Each of them turns a module into a graph: what a forward hook computes becomes a part of it, or is left out, and
backward hooks are refused or dropped.
"""

from __future__ import annotations

from hookcheck.contract.programs import tracing as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
