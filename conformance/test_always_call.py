"""What forward hooks with ``always_call`` do.

They run although the call of the module raises, in ``forward`` or in a hook; the output is None where there is none
yet. The error comes out of the call all the same.
"""

from __future__ import annotations

from hookcheck.contract.programs import always_call as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_program(cell: Cell) -> None:
    """Every program of this chapter."""
    cell.check()
