"""What hooks see of a backward that begins or ends at gradient edges.

The edge of a tensor is the Node that its gradient comes to, and the number of the result that it is there. It stands
for the tensor in ``torch.autograd.grad`` and ``torch.autograd.backward``.
"""

from __future__ import annotations

from hookcheck.contract.programs import gradient_edges as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
