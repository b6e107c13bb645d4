"""Does a script say of torch what hookcheck itself says? Exit code 1 exactly where the judge finds a deviation."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from hookcheck.contract.ledger import Ledger
from hookcheck.contract.verdict import NOT_OFFERED
from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import KINDS
from hookcheck.networks.examine import examine
from hookcheck.oracle.expected import Expected
from hookcheck.probe.run import lacking
from hookcheck.repro.script import script
from hookcheck.suite import conformance_folder
from hookcheck.topology.corpus import read
from hookcheck.topology.families import FAMILIES
from hookcheck.topology.model import Topology, size
from hookcheck.topology.values import values

from .broken import CHANGES, NEW_CHANGES, REGISTRATIONS, broken, changed
from .cases import BY_HAND, EMPTY, MIXED, ON_NETWORKS, WRITTEN, executed


def agree(topology: Topology, kinds: Iterable[str] = KINDS, silent: bool = True) -> set[str]:
    """Holds every script on ``topology`` against the judge; gives the clauses that deviate.

    Scripts of clauses that have no say on the topology are run only if ``silent``.
    """
    found = set()
    for result in examine(topology, "by-hand", kinds, ON_NETWORKS.values(), Ledger(())):
        deviating = {deviation.clause for deviation in result.deviations}
        for clause in ON_NETWORKS.values():
            if result.kind in clause.kinds and (silent or clause.id in result.judged):
                try:
                    text = script(topology, clause, KINDS[result.kind])
                except HookcheckError:
                    assert not result.judged, f"{clause.id} with {result.kind}"
                    continue
                code, words = executed(text)
                expected = 2 if result.outcome == NOT_OFFERED else int(clause.id in deviating)
                assert code == expected, f"{clause.id} with {result.kind}: {words or 'no words'}"
        found |= deviating
    return found


@pytest.mark.parametrize("name", BY_HAND)
def test_on_networks_by_hand(name: str) -> None:
    agree(BY_HAND[name])


def test_strides_of_a_tensor_without_entries_mean_nothing() -> None:
    """Neither to the suite nor to a script."""
    assert "OB-07" not in agree(EMPTY)


@pytest.mark.parametrize("family", FAMILIES)
def test_on_drawn_networks(family: str) -> None:
    @settings(
        max_examples=6,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(FAMILIES[family].topologies())
    def run(topology: Topology) -> None:
        # In a second backward the legacy hook fires with gradients of Nodes that no formula speaks of: which of them
        # goes with which call is a guess, and suite and script guess by different numbers.
        doubled = Expected(topology, values(topology)).trace.doubled
        agree(topology, ("full_backward",) if doubled else ("backward", "full_backward"), silent=False)

    run()


@pytest.mark.parametrize(("place", "family"), enumerate(FAMILIES))
def test_on_the_smallest_of_the_corpus(place: int, family: str) -> None:
    """Each hook kind on every fourth family."""
    topology = min(read(conformance_folder() / "corpus", family), key=size)
    agree(topology, list(KINDS)[place % 4 :: 4], silent=False)


BREAKS = {**CHANGES, **REGISTRATIONS}


@pytest.mark.parametrize("how", BREAKS)
def test_on_a_broken_torch(how: str) -> None:
    kind = KINDS["full_backward"]
    raises_anyway = "OB-01" in agree(MIXED, [kind.name])
    with broken(kind.register, how):
        found = agree(MIXED, [kind.name])
    # Torch 1.8 raises on this network before it comes to what is broken on purpose.
    if how == "raises" or not raises_anyway:
        assert found >= set(BREAKS[how][1].split())


@pytest.mark.parametrize("how", BREAKS)
@pytest.mark.parametrize("name", ["written", "typed", "doubt"])
def test_on_more_networks_and_a_broken_torch(name: str, how: str) -> None:
    with broken(KINDS["full_backward"].register, how):
        agree(BY_HAND[name], ["full_backward"])


def test_on_a_torch_that_lets_modules_be_written_to() -> None:
    with broken(KINDS["full_backward"].register, "never calls"):
        assert "BW-12" in agree(WRITTEN, ["full_backward"])


@pytest.mark.parametrize("how", ["calls twice", "wrong grad_output", "never calls"])
def test_on_a_broken_legacy_hook(how: str) -> None:
    kind = KINDS["backward"]
    with broken(kind.register, how):
        assert {"P2-11", "P2-12"} <= agree(MIXED, [kind.name])


def test_on_a_legacy_hook_that_is_told_something_else() -> None:
    kind = KINDS["backward"]
    with broken(kind.register, "wrong grad_input"):
        assert "P2-12" in agree(MIXED, [kind.name])


@pytest.mark.parametrize("how", NEW_CHANGES)
def test_on_a_torch_that_calls_other_kinds_otherwise(how: str) -> None:
    kind, change, clauses = NEW_CHANGES[how]
    if lacking(kind):
        pytest.skip(lacking(kind))
    with changed(KINDS[kind], change):
        assert agree(MIXED, [kind]) >= set(clauses.split())


def test_every_clause_is_seen_broken() -> None:
    broken_by = [*(ids for _, ids in BREAKS.values()), *(ids for _, _, ids in NEW_CHANGES.values())]
    seen = {id for ids in broken_by for id in ids.split()}
    seen_elsewhere = {"BW-03", "BW-12", "OR-01", "P2-11", "P2-12"}
    assert seen | seen_elsewhere == set(ON_NETWORKS)
