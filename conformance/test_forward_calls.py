"""What forward pre-hooks and forward hooks are told, on every network.

A forward pre-hook runs each time that its module is called, before ``forward``, and is told the positional arguments;
a forward hook runs after it and is told the output as well. With ``with_kwargs`` both are told the keyword arguments.
What they are told is held against what the oracle works out, for every module at every depth.
"""

from __future__ import annotations

from hookcheck.contract.chapters import forward as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_corpus(cell: Cell) -> None:
    """Every clause of this chapter, on every topology of the corpus."""
    cell.check()
