"""Which deviations are put into words? What nobody knows, and of what the ledger explains the smallest of each sort."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

from hookcheck.topology.codec import identify
from hookcheck.topology.model import Topology, size

Order = tuple[int, int, str]


@lru_cache(maxsize=256)
def order(topology: Topology) -> Order:
    """What topologies are sorted by to find the smallest: their size, and the id where that is the same."""
    return (*size(topology), identify(topology))


class Evidence:
    """The smallest topology so far for each sort of known deviation."""

    def __init__(self) -> None:
        """Nothing has been shown yet."""
        self._smallest: dict[Hashable, Order] = {}

    def wants(self, topology: Topology, sort: Hashable) -> bool:
        """Whether no smaller topology has shown ``sort``; if so, ``topology`` is now the one that shows it."""
        known = self._smallest.get(sort)
        if known is not None and known < order(topology):
            return False
        self._smallest[sort] = order(topology)
        return True
