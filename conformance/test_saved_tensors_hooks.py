"""What hooks for saved tensors do, set for all operations in a context.

Autograd saves tensors in forward that backward needs. Within ``saved_tensors_hooks(pack, unpack)`` it stores
``pack(tensor)`` instead, which may be any object, and backward gets the tensor back as ``unpack(packed)``.
``disable_saved_tensors_hooks`` forbids such contexts.
"""

from __future__ import annotations

from hookcheck.contract.programs import saved_tensors_hooks as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
