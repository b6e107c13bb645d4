"""Which layers of ``torch.nn`` can a topology hold? One class each, one place each.

A layer is a frozen dataclass with its settings, how they are drawn, its parameters, its source line, and its formulas
in NumPy: ``value``, the forward, and ``pull``, the VJP. `hookcheck.topology.catalogue` finds them all, so a new layer
needs no second entry.
"""
