"""What tutorials claim of hooks on tensors, of forward hooks and of saving them, and which releases do as they say.

A tensor's hook is registered with ``Tensor.register_hook`` and is called as ``hook(grad)`` in backward; a module's
forward hook may replace the output, so it can drop out a part of it. ``hookcheck claims`` shows what is refuted.
"""

from __future__ import annotations

from hookcheck.contract.programs import claims_tutorials as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
