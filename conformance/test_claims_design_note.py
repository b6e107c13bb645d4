"""What the design note "PyTorch hooks Part 2: nn.Module hooks" claims, and which releases do as it says.

The note was written when full backward hooks were made, and explains hooks by what a call of a module does step by
step. What it says is a claim, not a promise: where torch does otherwise, the claim is refuted on those releases, and
``hookcheck claims`` shows it.
"""

from __future__ import annotations

from hookcheck.contract.programs import claims_design_note as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
