"""In which order backward hooks of different kinds run.

The documentation names it: tensor hooks, pre-hooks of the Node, ``.grad`` of tensors that retain it, the Node,
post-accumulate hooks, post-hooks of the Node. Hooks of one kind run in the order of registration, and each sees what
those before it changed.
"""

from __future__ import annotations

from hookcheck.contract.programs import hook_order as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
