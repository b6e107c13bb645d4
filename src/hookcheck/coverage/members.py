"""What is a network of the corpus run with, and in which family does it stand?"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from hookcheck.hooks.kinds import KINDS
from hookcheck.topology.codec import identify
from hookcheck.topology.corpus import read, shares
from hookcheck.topology.model import Topology


class Member(NamedTuple):
    """A topology of a family, with the hook kinds that it is run with."""

    family: str
    topology: Topology
    kinds: tuple[str, ...] = tuple(KINDS)


def members(folder: Path, family: str) -> tuple[Member, ...]:
    """Those of one family in the corpus in ``folder``, in the order of its file. Raises what its `read` raises."""
    kinds = shares(folder, family)
    return tuple(Member(family, topology, kinds[identify(topology)]) for topology in read(folder, family))
