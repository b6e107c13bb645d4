"""Which hook kinds take turns? Siblings: what goes wrong with one mostly goes wrong with the others as well.

A network of the corpus is run with one of each group of siblings, which its id chooses. That halves the cases. Of 140
entries of the ledger that tell of networks, 130 show so on some release; ``conformance/draw_beside.py`` finds the cases
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

BITS = 4
"""Each group of siblings leaves out so many more of the last bits of the id, so that one does not follow another."""

NO_TURN = 4
"""The bit that leaves a group without a turn on a rare network."""


def share(id: str, beside: Container[str] = (), rare: bool = False) -> tuple[str, ...]:
    """The hook kinds that the network with that id is run with: one of each group of siblings, those that have none,
    and those ``beside`` them.

    A ``rare`` network, which takes long to run, is run with none of about half of the groups.

    >>> share("0123456789abcdef")[:3]
    ('full_backward', 'global_backward', 'global_full_backward_pre')
    """
    numbers = [int(id, 16) >> BITS * group for group in range(len(SIBLINGS))]
    turns = {kinds[n % len(kinds)] for n, kinds in zip(numbers, SIBLINGS) if not (rare and n & NO_TURN)}
    others = {kind for kinds in SIBLINGS for kind in kinds} - turns
    return tuple(kind for kind in KINDS if kind not in others or kind in beside)
