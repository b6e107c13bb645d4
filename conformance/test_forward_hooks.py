"""What forward hooks of a module do, and what they and forward pre-hooks do together.

A forward hook is called as ``hook(module, args, output)`` after ``forward`` and may replace the output. With
``with_kwargs`` it gets the keyword arguments too; with ``prepend`` it goes before its like.
"""

from __future__ import annotations

from hookcheck.contract.programs import forward_hooks as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
