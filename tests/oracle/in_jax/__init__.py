"""The layers and operations as JAX writes them, group by group: a second opinion that shares no code with us.

Each module of this folder has ``IN_JAX``: for a class, a function of (step, inputs, parameters) that gives a tuple of
the outputs that are differentiable; and ``NOT_IN_JAX``: for a class, why JAX has nothing like it.
"""
