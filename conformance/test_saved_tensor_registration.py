"""What hooks do that are registered on one saved tensor.

The node of an operation shows what it saved as ``grad_fn._saved_self`` and the like, and the place where it is kept as
``grad_fn._raw_saved_self``, on which ``register_hooks(pack, unpack)`` sets a pair for that tensor alone.
"""

from __future__ import annotations

from hookcheck.contract.programs import saved_tensor_registration as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
