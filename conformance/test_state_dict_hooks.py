"""What hooks on a module's ``state_dict`` and ``load_state_dict`` do.

A state_dict pre-hook is called as ``hook(module, prefix, keep_vars)`` before the state_dict is collected, a post-hook
as ``hook(module, state_dict, prefix, local_metadata)`` after it, to edit it in place. A load pre-hook is called before
a module loads, with the state_dict that it may mend and the lists of what is wrong; a load post-hook as
``hook(module, incompatible_keys)`` after it, and its edits of the keys decide whether strict loading raises.
"""

from __future__ import annotations

from hookcheck.contract.programs import state_dict_hooks as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
