"""What hooks do that run where modules register parameters, buffers and submodules.

They are put on all modules and are called as ``hook(module, name, value)`` by ``register_parameter``,
``register_buffer``, ``register_module`` and assignments; what they return is registered instead.
"""

from __future__ import annotations

from hookcheck.contract.programs import registration_hooks as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
