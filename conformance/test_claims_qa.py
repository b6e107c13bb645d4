"""What a much-read question and answer claims on how hooks of modules are used, and which releases do as it says.

It is about collecting what modules give and what gradients reach them: what hooks are called with, whether a method can
be one, and how torch tells that ``register_backward_hook`` is deprecated. ``hookcheck claims`` shows what is refuted.
"""

from __future__ import annotations

from hookcheck.contract.programs import claims_qa as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
