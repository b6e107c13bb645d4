"""What the transforms of torch.func do with hooks.

``torch.func.functional_call`` calls a module with parameters that it is given, hooks and all; ``vmap``, ``grad`` and
``jacrev`` run forward hooks, and refuse or pass by the full backward hooks.
"""

from __future__ import annotations

from hookcheck.contract.programs import torch_func as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
