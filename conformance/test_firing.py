"""When module backward hooks fire.

PyTorch gives three rules. Ordinarily a hook fires when the gradients with respect to the inputs of its module are
computed. If no input requires grad, it fires when those with respect to the outputs are. If no output requires grad
either, it never fires. So it fires once for each forward use and backward pass, in an order that the graph allows, and
not at all where grad mode is off. The legacy hook advertises the same, and is besides what it really is: a hook on the
grad_fn of the first output.
"""

from __future__ import annotations

from hookcheck.contract.chapters import firing as CHAPTER  # noqa: F401
from hookcheck.plugin import Cell


def test_corpus(cell: Cell) -> None:
    """Every clause of this chapter, on every topology of the corpus."""
    cell.check()
