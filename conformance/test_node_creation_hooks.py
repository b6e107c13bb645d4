"""What hooks on the creation of Nodes and callbacks at the end of backward do.

In the context ``node_creation_hook(hook)``, ``hook(node)`` is called for every Node that autograd makes.
``queue_callback(callback)`` in a backward has ``callback()`` called when the backward is done.
"""

from __future__ import annotations

from hookcheck.contract.programs import node_creation_hooks as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
