"""What activation checkpointing does to hooks.

``torch.utils.checkpoint.checkpoint(function, *args)`` does not keep what ``function`` saves for backward, but runs it
again in backward. The reentrant variant runs the first pass without grad mode and a backward of its own inside of
backward; the non-reentrant one, ``use_reentrant=False``, stands on hooks for saved tensors, and stops the second pass
as soon as it has what it needs. Forward hooks inside run in both passes.
"""

from __future__ import annotations

from hookcheck.contract.programs import checkpointing as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
