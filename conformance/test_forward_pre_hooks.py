"""What forward pre-hooks of a module do.

A forward pre-hook is called as ``hook(module, args)`` before ``forward`` and may replace the positional arguments. With
``with_kwargs`` it is called as ``hook(module, args, kwargs)`` and may replace both.
"""

from __future__ import annotations

from hookcheck.contract.programs import forward_pre_hooks as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
