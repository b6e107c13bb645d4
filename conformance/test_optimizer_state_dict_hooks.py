"""What hooks on an optimizer's ``state_dict`` and ``load_state_dict`` do.

Four kinds enclose the two: a state_dict pre-hook ``hook(optimizer)``, a post-hook ``hook(optimizer, state_dict)`` that
may change what is saved, a load pre-hook ``hook(optimizer, state_dict)`` that may change what is loaded, and a load
post-hook ``hook(optimizer)``. With ``prepend`` a hook goes before its like.
"""

from __future__ import annotations

from hookcheck.contract.programs import optimizer_state_dict_hooks as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
