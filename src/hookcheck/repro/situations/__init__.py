"""Scripts of situations: one that deviates is reduced, set beside one that conforms, and both are written as one."""
