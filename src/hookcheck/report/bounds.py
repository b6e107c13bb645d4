"""What do new topologies without a fault bound? How often one of their kind can have a fault that was not seen."""

from __future__ import annotations

import math

CONFIDENCE = 0.95
"""How sure the bound is: of a hundred runs like this one, five may be wrong in it."""


def bound(topologies: int, faults: int) -> float:
    """The most faulty ones there can be among a number of topologies like the ``topologies`` of which ``faults`` were.

    It is the exact upper limit of a Poisson mean: the mean at which so few would be seen in 5 of 100 runs. Without any
    fault that is 3.0, so that the share of faulty topologies is under 3/N, the rule of three (Hanley and
    Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 1983). At most 1 of each is faulty.
    """
    low, high = float(faults), faults + 10.0 + 5 * math.sqrt(faults)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _at_most(faults, middle) > 1 - CONFIDENCE else (low, middle)
    return min(high, float(topologies))


def _at_most(count: int, mean: float) -> float:
    """How probable it is to see at most ``count`` where ``mean`` are expected (Poisson)."""
    return math.fsum(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(count + 1))


def statement(topologies: int, faults: int) -> str:
    """What the new topologies of a run say of all that could be drawn, as a sentence; empty where there were none.

    >>> statement(30_000, 0)
    'no fault in 30,000 new topologies: fewer than 1 in 10,014 like them show one (95 % confidence)'
    """
    if not topologies:
        return ""
    seen = {0: "no fault", 1: "1 fault"}.get(faults, f"{faults:,} faults")
    drawn = f"{topologies:,} new topolog{'y' if topologies == 1 else 'ies'}"
    share = topologies / bound(topologies, faults)
    if share < 2:
        return f"{seen} in {drawn}: too few to bound how many like them show one"
    return f"{seen} in {drawn}: fewer than 1 in {share:,.0f} like them show one (95 % confidence)"
