"""Does the contract see what is wrong? Hook engines that are wrong in one way each, and what catches them."""

from __future__ import annotations

import pytest
import torch
from faults.engine import Fault, named, release
from faults.networks import BY_HAND
from faults.on_networks import FAULTS, OFFERED, catching, excusing, until_caught
from faults.samples import deviations

from hookcheck.contract.clause import CLAUSES
from hookcheck.programs.program import Program


@pytest.mark.slow
@pytest.mark.one_in(3)
@pytest.mark.parametrize("fault", OFFERED, ids=named)
def test_a_fault_is_caught_on_every_hook_kind_and_excused_on_no_network(fault: Fault) -> None:
    """Looked at until the clauses that it names catch it; `hookcheck kill-matrix` looks at every sample."""
    shown = {kind: list(until_caught(fault, kind)) for kind in fault.kinds}
    catches = {kind: catching(changes) for kind, changes in shown.items()}
    print(f"{fault.what}:")
    for kind, clauses in catches.items():
        print(f"  {kind}: {', '.join(sorted(clauses)) or 'NOT CAUGHT'}")
    assert [kind for kind, clauses in catches.items() if not clauses] == []
    assert set(fault.clauses) - set().union(*catches.values()) == set()
    assert {entry for changes in shown.values() for entry in excusing(changes)} == set()


SHOWN = {
    ("no input requires grad", "OB-05"),
    ("two inputs, one of which requires grad", "OB-05"),
    ("two inputs, the second of which requires grad", "OB-05"),
    ("a list", "OB-05"),
    ("a dict", "OB-05"),
    ("an input that is not used", "OB-04"),
    ("a sparse tensor given to a module", "BW-02"),
    ("a sparse tensor given to a module", "OB-01"),
    ("a sparse gradient", "OB-05"),
    ("a backward of a backward", "BW-02"),
    ("a backward of a backward", "BW-05"),
}
"""What full hooks are known to do on the networks by hand: two warnings, a gradient of zeros where there was none, an
exception for a sparse tensor, and silence in the outer of two backwards."""


@pytest.mark.skipif(release(torch.__version__) < (2, 8), reason="one of the warnings came with 2.8")
@pytest.mark.parametrize("kind", ["full_backward", "global_full_backward"])
def test_a_sound_engine_shows_nothing_on_networks_by_hand(kind: str) -> None:
    pairs = {(name, clause) for name, t in BY_HAND.items() for clause, *_ in deviations(t, kind)}
    assert pairs == SHOWN


@pytest.mark.parametrize("id", [c.id for c in CLAUSES.values() if not isinstance(c, Program)])
def test_a_clause_catches_a_fault(id: str) -> None:
    assert [fault.what for fault in OFFERED if id in fault.clauses] or _came_later(id) or id in OF_TWO_DEVICES


def _came_later(id: str) -> bool:
    """Whether the clause speaks of what the installed torch does not do yet."""
    return release(CLAUSES[id].since) > release(torch.__version__)


OF_TWO_DEVICES = {"PL-02"}
"""What compares two devices: tests/networks/test_places.py has faults of one of them caught, on a stand-in."""


def test_faults_have_names_of_their_own() -> None:
    assert len({fault.what for fault in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("fault", OFFERED, ids=lambda fault: fault.what)
def test_a_fault_leaves_torch_as_it_was(fault: Fault) -> None:
    def code() -> list[object]:
        from torch.nn.modules import _functions, module

        hook = torch.utils.hooks.BackwardHook
        graph = torch.autograd.graph
        owners = (torch.nn.Module, hook, _functions.BackwardHookFunction, module, torch.Tensor, graph)
        owners = (*owners, getattr(graph, "saved_tensors_hooks", graph), torch.utils.checkpoint)
        owners = (*owners, getattr(torch, "func", graph))
        return [item for owner in owners for item in vars(owner).items()]

    before = code()
    with fault.patch():
        assert code() != before
    assert code() == before
