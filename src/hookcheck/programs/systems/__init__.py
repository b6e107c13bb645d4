"""Which programs do people build out of hooks? Worked ones, each in plain PyTorch, and what is right for them.

Each program gives what its hooks received or changed; those about backward hooks take the variant, ``legacy`` or
``full``. Run as a script, it prints that beside what is right: ``python -m hookcheck.programs.systems.feature_maps``.
"""
