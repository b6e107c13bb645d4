"""Which hook kinds take turns? Siblings: what goes wrong with one mostly goes wrong with the others as well.

Of siblings a network of the corpus is run with one, as its id has it, which halves the time that the corpus takes. Of
the 140 entries of the ledger that tell of networks, all but 7 show so; ``conformance/draw_beside.py`` finds the cases
that show the rest.
"""

from __future__ import annotations

from collections.abc import Container

from hookcheck.hooks.kinds import KINDS

SIBLINGS = (
    ("backward", "global_backward"),
    ("full_backward", "global_full_backward"),
    ("full_backward_pre", "global_full_backward_pre"),
    ("forward_pre", "forward_pre_kwargs", "global_forward_pre"),
    ("forward", "forward_kwargs", "global_forward"),
    ("tensor", "output_tensor"),
    ("post_accumulate", "multi_grad"),
    ("output_retain_grad", "saved_tensors"),
    ("output_node", "output_node_pre"),
    ("acting_full_backward", "acting_full_backward_pre"),
    ("acting_forward_pre", "acting_forward"),
)
"""The hook kinds that have siblings; any other is by itself."""

DIGIT = 4
"""How many bits of an id a digit of it has: the first siblings go by all digits, the next by all but the last, …"""


def share(id: str, beside: Container[str] = (), rare: bool = False) -> tuple[str, ...]:
    """The hook kinds that the network with that id is run with: one of all siblings, and those ``beside`` them.

    Of a ``rare`` network, which takes long to run, half of the siblings have no turn at all.

    >>> share("0123456789abcdef")[:3]
    ('full_backward', 'global_backward', 'global_full_backward_pre')
    """
    digits = [int(id, 16) >> DIGIT * turn for turn in range(len(SIBLINGS))]
    turns = {kinds[n % len(kinds)] for n, kinds in zip(digits, SIBLINGS) if not (rare and n & 4)}
    others = {kind for kinds in SIBLINGS for kind in kinds} - turns
    return tuple(kind for kind in KINDS if kind not in others or kind in beside)
