"""A class of the control's own, which has another forward than the network's."""

from __future__ import annotations

import re
from collections.abc import Sequence

CONTROL = "Control"
"""The name of that class."""

_FORWARD = "    def forward("


def overriding(classes: Sequence[str], others: Sequence[str]) -> tuple[str, str] | None:
    """The name of the root's class, and a class that has the forward of the one class in ``others`` in its place.

    None where there are more of them, or more than that differs.
    """
    root = re.match(r"class (\w+)\(", classes[-1]) if classes else None
    if root is None or len(others) != 1:
        return None
    (head, _, _), (same, forward, body) = (text.partition(_FORWARD) for text in (classes[-1], others[0]))
    if head != same or not forward:
        return None
    return root[1], f"class {CONTROL}({root[1]}):\n{forward}{body}"
