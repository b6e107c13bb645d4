"""What tests draw from a family: a fixed sample to judge, and a search for one member of a kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import chain

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from hookcheck.topology.model import Topology

Family = Callable[[], SearchStrategy[Topology]]

DRAWING = settings(
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)


@cache
def drawn(family: Family) -> tuple[Topology, ...]:
    """100 members, the same in every run; the health checks say so if many draws are thrown away."""
    members: list[Topology] = []

    @settings(DRAWING, max_examples=100)
    @given(family())
    def collect(topology: Topology) -> None:
        members.append(topology)

    collect()
    return tuple(members)


@cache
def more(family: Family, batch: int) -> tuple[Topology, ...]:
    """Further members, 200 a batch, which all searches of a family share."""
    members: list[Topology] = []

    @seed(batch)
    @settings(DRAWING, derandomize=False, max_examples=200)
    @given(family())
    def collect(topology: Topology) -> None:
        members.append(topology)

    collect()
    return tuple(members)


def reaches(family: Family, condition: Callable[[Topology], bool]) -> bool:
    """Whether some member meets ``condition``: in the sample, or else in a search a hundred times as long.

    What 100 draws hold changes with Hypothesis.
    """
    batches = chain([drawn(family)], (more(family, batch) for batch in range(50)))
    return any(map(condition, chain.from_iterable(batches)))
