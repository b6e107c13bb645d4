"""Which Nodes of a graph must run before which others?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def before(places: Mapping[Any, int]) -> dict[int, int]:
    """For Nodes with a number each (several may share one): by number, the bit mask of those that run before it.

    Backward runs a Node when all are done that lead to it and that it meets.
    """
    earlier = dict.fromkeys(places.values(), 0)
    behind = _behind(places)
    for node, number in places.items():
        for other in _bits(behind[node]):
            earlier[other] |= 1 << number
    return earlier


def uses(starts: Iterable[Any]) -> Counter[tuple[Any, int]]:
    """How often each output of a Node, by its number, is used by the Nodes at or behind ``starts``."""
    counts: Counter[tuple[Any, int]] = Counter()
    stack = [*starts]
    seen = set(stack)
    while stack:
        node = stack.pop()
        for following, output in edges(node):
            counts[following, output] += 1
            if following not in seen:
                seen.add(following)
                stack.append(following)
    return counts


def _behind(places: Mapping[Any, int]) -> dict[Any, int]:
    """For each Node at or behind those in ``places``: the bit mask of the numbers that backward meets after it."""
    following_of: dict[Any, int] = {}
    for start in places:
        stack = [start]
        while stack:
            node = stack[-1]
            nexts = _following(node)
            waiting = (
                [] if node in following_of else [following for following in nexts if following not in following_of]
            )
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            following_of[node] = 0
            for following in nexts:
                following_of[node] |= following_of[following] | (1 << places[following] if following in places else 0)
    return following_of


def _following(node: Any) -> list[Any]:
    return [following for following, _ in edges(node)]


def edges(node: Any) -> list[tuple[Any, int]]:
    """The Nodes that a Node hands gradients to, with the number of the output that each is of; none where its graph is
    gone, as that of an output nobody kept."""
    try:
        return [edge for edge in node.next_functions if edge[0] is not None]
    except RuntimeError:
        return []


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
