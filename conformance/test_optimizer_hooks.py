"""What hooks on an optimizer's step do.

A step pre-hook is called as ``hook(optimizer, args, kwargs)`` before every step and may replace its arguments, a step
post-hook is called so after it; each has a global form for all optimizers. Making an optimizer wraps ``step`` of its
class: that is where they are called.
"""

from __future__ import annotations

from hookcheck.contract.programs import optimizer_hooks as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
