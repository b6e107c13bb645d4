"""Which programs do people build out of hooks? Worked ones, each in plain PyTorch, and what is right for them.

Each program takes the hook variant, ``legacy`` or ``full``, and gives what its hooks received. Run as a script, it
prints that beside what is right: ``python conformance/systems/two_layer_sigmoid.py``.
"""
