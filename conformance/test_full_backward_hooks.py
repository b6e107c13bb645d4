"""What full backward hooks of a module do, beside what any network shows.

A full backward hook is called as ``hook(module, grad_input, grad_output)`` when the gradients of the inputs of a call
are computed; a tuple that it returns takes the place of ``grad_input``. It hangs on an identity that is put around the
module, which is why arguments and outputs are views while it is there.
"""

from __future__ import annotations

from hookcheck.contract.programs import full_backward_hooks as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
