"""What CUDA graphs do with hooks.

``torch.cuda.make_graphed_callables`` takes modules without hooks, which can be added afterwards; a
``torch.cuda.CUDAGraph`` has hooks on its own life: capture, instantiation, replay.
"""

from __future__ import annotations

from hookcheck.contract.programs import cuda_graphs as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
