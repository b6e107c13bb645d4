"""Which functional operations stand between modules? One class each, one place each.

An operation is a frozen dataclass with its settings, the expression that applies it, and its formulas in NumPy:
``value``, the forward, and ``pull``, the VJP. `hookcheck.topology.catalogue` finds them all, so a new operation needs
no second entry.
"""

from hookcheck.topology.ops.arithmetic import Add, Mul
from hookcheck.topology.ops.reduction import Mean, Sum

__all__ = ["Add", "Mean", "Mul", "Sum"]
