"""What so many topologies bound: against the rule of three, and against tables."""

from __future__ import annotations

import doctest

import pytest

from hookcheck.report import bounds
from hookcheck.report.bounds import bound, statement


def test_the_example_is_right() -> None:
    assert doctest.testmod(bounds).failed == 0


@pytest.mark.parametrize("topologies", [100, 4_197, 30_000])
def test_without_a_fault_it_is_the_rule_of_three(topologies: int) -> None:
    assert 2.994 < bound(topologies, 0) < 3.006


@pytest.mark.parametrize(("faults", "limit"), [(1, 4.744), (2, 6.296), (5, 10.513), (10, 16.962)])
def test_with_faults_it_is_the_limit_of_the_tables(faults: int, limit: float) -> None:
    """Upper 95 % limits of a Poisson mean, one-sided (Pearson and Hartley, Biometrika Tables, table 40)."""
    assert limit - 0.001 < bound(10**6, faults) < limit + 0.001


def test_it_falls_with_topologies_and_rises_with_faults() -> None:
    shares = [bound(n, 0) / n for n in (10, 100, 1000)]
    assert shares == sorted(shares, reverse=True)
    assert bound(1000, 0) < bound(1000, 1) < bound(1000, 7)


def test_no_more_than_all_are_faulty() -> None:
    assert bound(1, 0) == 1
    assert bound(3, 3) == 3


@pytest.mark.parametrize(
    ("topologies", "faults", "said"),
    [
        (0, 0, ""),
        (1, 0, "no fault in 1 new topology: too few to bound how many like them show one"),
        (300, 1, "1 fault in 300 new topologies: fewer than 1 in 63 like them show one (95 % confidence)"),
    ],
)
def test_it_is_said_in_a_sentence(topologies: int, faults: int, said: str) -> None:
    assert statement(topologies, faults) == said
