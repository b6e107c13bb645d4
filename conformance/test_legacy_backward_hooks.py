"""What legacy backward hooks of a module do, which are deprecated since 1.8.

A hook that is registered with ``register_backward_hook`` hangs on the Node that made the first output. It sees the
gradients of that Node, which are those of the module only where the module is this one Node.
"""

from __future__ import annotations

from hookcheck.contract.programs import legacy_backward_hooks as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
