from __future__ import annotations

from networks.cases import TIMES, case

from hookcheck.contract.evidence import Evidence, order
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Sequential

SMALL, LARGE = case().topology, case(Sequential((TIMES, TIMES))).topology


def test_a_larger_topology_is_sorted_behind_a_smaller_one_and_no_two_are_level() -> None:
    assert order(SMALL) < order(LARGE)
    assert order(SMALL) != order(case(Linear(1, 1)).topology)


def test_the_first_of_a_sort_is_wanted_and_a_larger_one_is_not() -> None:
    evidence = Evidence()
    assert evidence.wants(SMALL, "sort")
    assert not evidence.wants(LARGE, "sort")
    assert evidence.wants(LARGE, "another sort")


def test_a_smaller_one_takes_the_place_of_what_was_shown() -> None:
    evidence = Evidence()
    assert evidence.wants(LARGE, "sort")
    assert evidence.wants(SMALL, "sort")
    assert not evidence.wants(LARGE, "sort")


def test_every_deviation_of_the_smallest_is_wanted() -> None:
    evidence = Evidence()
    assert evidence.wants(SMALL, "sort")
    assert evidence.wants(SMALL, "sort")
