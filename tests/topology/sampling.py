"""What tests draw from a family: a fixed sample to judge, and a search for one member of a kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis.errors import NoSuchExample
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
    """200 members, the same in every run; the health checks say so if many draws are thrown away."""
    members: list[Topology] = []

    @settings(DRAWING, max_examples=200)
    @given(family())
    def collect(topology: Topology) -> None:
        members.append(topology)

    collect()
    return tuple(members)


def reaches(family: Family, condition: Callable[[Topology], bool]) -> bool:
    """Whether some member meets ``condition``: in the sample, or else in a search fifty times as long.

    What 200 draws hold changes with Hypothesis.
    """
    if any(map(condition, drawn(family))):
        return True
    try:
        return condition(find(family(), condition, settings=settings(DRAWING, max_examples=10_000)))
    except NoSuchExample:
        return False
