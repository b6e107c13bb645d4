"""What comes of backward hooks that act: of gradients that they return.

Several hooks pass a gradient on to each other, pre-hooks pass it to full hooks, children to their containers. In the
end every weight and every input must have the gradient that follows from what was returned, and no other.
"""

from __future__ import annotations

from hookcheck.contract.programs import acting_backward_hooks as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
