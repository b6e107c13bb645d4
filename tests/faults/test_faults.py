"""Does the contract see what is wrong? Hook engines that are wrong in one way each, and what catches them."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from hookcheck.contract.clause import CLAUSES
from hookcheck.topology.codec import identify

from .engine import ALL, Fault, release
from .firing import FIRING
from .gradients import GRADIENTS
from .observers import OBSERVERS
from .samples import BY_HAND, Caught, deviations, slices

FAULTS = (*GRADIENTS, *FIRING, *OBSERVERS)
OFFERED = [fault for fault in FAULTS if fault.offered]


@cache
def sound(position: int, kind: str) -> Caught:
    """The deviations of a network by hand that no fault is to blame for; the corpus has none."""
    return deviations(*slices()[position], kind) if position < len(BY_HAND) else frozenset()


def catching(fault: Fault, kind: str) -> set[str]:
    """The clauses that catch ``fault``, sought until all are found that it names."""
    found: set[str] = set()
    for position, (family, topology) in enumerate(slices()):
        before = sound(position, kind)
        with fault.patch():
            found |= {clause for clause, *_ in deviations(family, topology, kind) - before}
        if set(fault.clauses) <= found:
            break
    return found


@pytest.mark.parametrize("fault", OFFERED, ids=lambda fault: fault.what)
def test_a_fault_is_caught_on_every_hook_kind(fault: Fault) -> None:
    found = {kind: catching(fault, kind) for kind in fault.kinds}
    print(f"{fault.what}:")
    for kind, clauses in found.items():
        print(f"  {kind}: {', '.join(sorted(clauses)) or 'NOT CAUGHT'}")
    assert [kind for kind, clauses in found.items() if not clauses] == []
    assert set(fault.clauses) - set().union(*found.values()) == set()


@pytest.mark.parametrize("kind", ALL)
def test_a_sound_engine_shows_nothing_new(kind: str) -> None:
    found = {
        deviation for family, topology in slices()[len(BY_HAND) :] for deviation in deviations(family, topology, kind)
    }
    assert found == set()


@pytest.mark.parametrize("kind", ["full_backward", "global_full_backward"])
def test_a_sound_engine_shows_nothing_on_networks_by_hand(kind: str) -> None:
    names = {identify(topology): name for name, topology in BY_HAND.items()}
    found = {(names[id], clause) for f, t in slices()[: len(BY_HAND)] for clause, id, *_ in deviations(f, t, kind)}
    assert found == set()


@pytest.mark.parametrize("id", CLAUSES)
def test_a_clause_catches_a_fault(id: str) -> None:
    assert [fault.what for fault in OFFERED if id in fault.clauses] or _came_later(id)


def _came_later(id: str) -> bool:
    """Whether the clause speaks of what the installed torch does not do yet."""
    return release(CLAUSES[id].since) > release(torch.__version__)


def test_faults_have_names_of_their_own() -> None:
    assert len({fault.what for fault in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("fault", OFFERED, ids=lambda fault: fault.what)
def test_a_fault_leaves_torch_as_it_was(fault: Fault) -> None:
    def code() -> list[object]:
        from torch.nn.modules import _functions, module

        owners = (torch.nn.Module, torch.utils.hooks.BackwardHook, _functions.BackwardHookFunction, module)
        return [item for owner in owners for item in vars(owner).items()]

    before = code()
    with fault.patch():
        assert code() != before
    assert code() == before
