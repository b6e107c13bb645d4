"""What torch.compile does with hooks that act in backward.

Full backward hooks break the graph, unless compiled autograd captures the backward as a whole; hooks on tensors and
parameters, which live outside the graph, run as in eager.
"""

from __future__ import annotations

from hookcheck.contract.programs import torch_compile_backward as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
