"""Which Nodes of a graph must run before which others?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def before(places: Mapping[Any, int]) -> dict[int, int]:
    """For Nodes with a number each (several may share one): by number, the bit mask of those that run before it.

    Backward runs a Node when all are done that lead to it and that it meets.
    """
    found = dict.fromkeys(places.values(), 0)
    behind = _behind(places)
    for node, number in places.items():
        for other in _bits(behind[node]):
            found[other] |= 1 << number
    return found


def _behind(places: Mapping[Any, int]) -> dict[Any, int]:
    """For each Node at or behind those in ``places``: the bit mask of the numbers that backward meets after it."""
    found: dict[Any, int] = {}
    for start in places:
        stack = [start]
        while stack:
            node = stack[-1]
            nexts = _following(node)
            waiting = [] if node in found else [following for following in nexts if following not in found]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            found[node] = 0
            for following in nexts:
                found[node] |= found[following] | (1 << places[following] if following in places else 0)
    return found


def _following(node: Any) -> list[Any]:
    """The Nodes that a Node hands gradients to; none where its graph is gone, as that of an output nobody kept."""
    try:
        return [following for following, _ in node.next_functions if following is not None]
    except RuntimeError:
        return []


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
