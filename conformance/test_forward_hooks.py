"""What forward pre-hooks and forward hooks of a module do.

A forward pre-hook is called as ``hook(module, args)`` before ``forward`` and may replace the arguments; a forward hook
is called as ``hook(module, args, output)`` after it and may replace the output. With ``with_kwargs`` both get the
keyword arguments too, with ``prepend`` a hook goes before its like, with ``always_call`` a forward hook runs although
the call raises.
"""

from __future__ import annotations

from hookcheck.contract.programs import forward_hooks as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
