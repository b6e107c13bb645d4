"""Which layers of ``torch.nn`` can a topology hold? One class each, one place each.

A layer is a frozen dataclass with its settings, how they are drawn, its parameters, its source line, its NumPy forward
and its NumPy VJP. `hookcheck.topology.catalogue` finds them all, so a new layer needs no second entry.
"""
