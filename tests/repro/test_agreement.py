"""Does a script say of torch what the judge says? It fails where the judge finds a deviation, and passes where that is
mended."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from faults.engine import replaced

from hookcheck.contract.clause import Subject
from hookcheck.contract.ledger import Ledger
from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import KINDS, HookKind
from hookcheck.probe.registering import PREPEND, owner
from hookcheck.probe.run import lacking, observe
from hookcheck.record.model import Folded, record_name
from hookcheck.record.reading import read_folded
from hookcheck.releases.numbers import release
from hookcheck.repro.cells import Wanted, in_record
from hookcheck.repro.choice import Chosen, chosen
from hookcheck.repro.reduce import reduced
from hookcheck.repro.report import of_a_network
from hookcheck.repro.script import EXPECTED_OF_CONTROL
from hookcheck.repro.sighting import Sighting, sightings, unable
from hookcheck.suite import conformance_folder
from hookcheck.topology.model import Topology
from hookcheck.topology.values import values

from .broken import CHANGES, NEW_CHANGES, REGISTRATIONS, broken, changed
from .cases import BY_HAND, MIXED, ON_NETWORKS, executed, limits

REPORTS = Path(__file__).parents[2] / "reports"
RECORD = REPORTS / "records" / record_name(str(torch.__version__), "cpu")
DRAWN = 6
"""So many deviating cells of the record are drawn; the slow tests look at the causes of all (see `test_causes`)."""


@lru_cache(maxsize=1)
def record() -> Folded:
    return read_folded(RECORD)


def deviating() -> list[str]:
    """Cells of the record, drawn with a fixed seed, one a clause; last those that take long to reduce."""
    if not RECORD.exists():
        return []
    by_clause: dict[str, list[str]] = {}
    for group in record().alike:
        for deviation in group.deviations:
            for kind in group.kinds if deviation.clause in ON_NETWORKS else ():
                by_clause.setdefault(deviation.clause, []).append(f"{deviation.clause}/{group.family}/{kind}")
    draw = Random(0)
    cells = [draw.choice(sorted(set(cells))) for _, cells in sorted(by_clause.items())]
    draw.shuffle(cells)
    return sorted(cells, key=lambda cell: cell.split("/")[1] in ("compiled", "context"))


@pytest.mark.slow
@pytest.mark.skipif(not RECORD.exists(), reason="there is no record of this torch")
@pytest.mark.parametrize("cell", deviating()[:DRAWN])
def test_a_deviating_cell_of_the_record(cell: str) -> None:
    wanted = in_record(cell, record(), conformance_folder() / "corpus", REPORTS)
    is_right(of_a_network(wanted, "cpu", lambda tried: None).script)


def is_right(text: str) -> None:
    """A script of this torch is short, fails here, and passes where nothing of hooks can be wrong."""
    limits(text)
    assert executed(text)[0] == 1
    # what is held against the run without hooks is so where nobody is registered, unless hooks change what is due
    if "run(hooked=True)" in text and EXPECTED_OF_CONTROL not in text:
        with contextlib.ExitStack() as mended:
            for kind in KINDS.values():
                if kind.register in text and kind.scope != "run" and not lacking(kind.name):
                    mended.enter_context(changed(kind, None))
            assert executed(text)[0] == 0


LEGACY = [cell for cell in deviating() if cell.endswith("/backward")]


@pytest.mark.slow
@pytest.mark.parametrize("cell", LEGACY)
def test_the_full_hook_is_the_control_of_a_legacy_one_where_it_conforms(
    cell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is no control, the judge finds that it deviates as well: inside of vmap, or with a loss on the way."""
    seen: list[Sighting] = []

    def noting(sighting: Sighting) -> Chosen:
        seen.append(sighting)
        return chosen(sighting)

    monkeypatch.setattr("hookcheck.repro.report.chosen", noting)
    wanted = in_record(cell, record(), conformance_folder() / "corpus", REPORTS)
    text = of_a_network(wanted, "cpu", lambda tried: None).script
    clause, full = ON_NETWORKS[wanted.clause], KINDS["full_backward"]
    if "calls" not in text or full.name not in clause.kinds:
        pytest.skip("it is not about calls, or not about full hooks")
    topology = seen[0].case.topology
    judged = clause.subject != Subject.FIRING or observe(topology, values(topology), full.name).events
    conforms = bool(judged) and not sightings(topology, wanted.family, full, clause, Ledger(()))
    assert (f'run("{full.register}")' in text) == conforms


def shown(topology: Topology, kind: HookKind, clause: str) -> tuple[str, Topology, HookKind]:
    """The script of what deviates now, for no reason that the ledger knows; and what it is reduced to."""
    symptom = seen(topology, kind, clause)[0].symptom
    reduction = reduced(topology, kind, lambda case, hook: any(s.symptom == symptom for s in seen(case, hook, clause)))
    text = chosen(next(sighting for sighting in seen(*reduction, clause) if sighting.symptom == symptom)).text
    return text, *reduction


def seen(case: Topology, hook: HookKind, clause: str) -> list[Sighting]:
    if unable(case, hook) or hook.name not in ON_NETWORKS[clause].kinds:
        return []
    return sightings(case, "by-hand", hook, ON_NETWORKS[clause], Ledger(()))


FULL_HOOKS_AS_THEY_ARE = (2, 0)
"""Since when full hooks do on the networks by hand what the faults here change."""

BROKEN = [(how, clause) for how, (_, clauses) in {**CHANGES, **REGISTRATIONS}.items() for clause in clauses.split()]
OTHERWISE = [(how, clause) for how, (_, _, clauses) in NEW_CHANGES.items() for clause in clauses.split()]


def agrees(torch_with: Callable[[], AbstractContextManager[None]], kind: HookKind, clause: str) -> None:
    """The script of a clause fails on a torch that is broken, and passes on the one that is here, unless what it was
    reduced to deviates there too."""
    conforming = [case for case in BY_HAND.values() if not seen(case, kind, clause)]
    with torch_with():
        topology = next((case for case in conforming if seen(case, kind, clause)), None)
        if topology is None and release(torch.__version__) < FULL_HOOKS_AS_THEY_ARE:
            pytest.skip("on this torch no network by hand shows it")
        assert topology is not None
        text, case, hook = shown(topology, kind, clause)
        limits(text)
        assert executed(text)[0] == 1
    assert executed(text)[0] == int(bool(seen(case, hook, clause)))


@pytest.mark.slow
@pytest.mark.one_in(2)
@pytest.mark.parametrize(("how", "clause"), BROKEN)
def test_a_broken_torch_and_a_mended_one(how: str, clause: str) -> None:
    agrees(lambda: broken("register_full_backward_hook", how), KINDS["full_backward"], clause)


def twice(original: Any) -> Any:
    """Has the hook on all modules called twice, and so the others too rarely."""
    return lambda hook: original(lambda *args: (hook(*args), hook(*args))[1])


def never_before_others(original: Any) -> Any:
    return lambda module, hook, prepend=False, **settings: original(module, hook, **settings)


@pytest.mark.slow
@pytest.mark.skipif(not PREPEND, reason="hooks are put before others since torch 2.0")
@pytest.mark.parametrize("kind", ["acting_forward", "acting_forward_pre", "acting_full_backward"])
def test_hooks_of_a_chain_that_are_not_called_one_behind_the_other(kind: str) -> None:
    of = KINDS[kind]
    agrees(lambda: replaced(owner(of), of.register, twice), of, "CH-01")
    agrees(lambda: replaced(torch.nn.Module, of.then, never_before_others), of, "CH-01")


@pytest.mark.slow
@pytest.mark.one_in(2)
@pytest.mark.parametrize(("how", "clause"), OTHERWISE)
def test_a_torch_that_calls_other_kinds_otherwise(how: str, clause: str) -> None:
    kind, change, _ = NEW_CHANGES[how]
    if lacking(kind):
        pytest.skip(lacking(kind))
    agrees(lambda: changed(KINDS[kind], change), KINDS[kind], clause)


def test_a_torch_that_raises_without_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    forward = torch.nn.Linear.forward

    def otherwise(self: Any, x: Any) -> Any:
        if not self._backward_hooks:
            raise RuntimeError("broken on purpose")
        return forward(self, x)

    @contextlib.contextmanager
    def broken_there() -> Iterator[None]:
        with monkeypatch.context() as there:
            there.setattr(torch.nn.Linear, "forward", otherwise)
            yield

    agrees(broken_there, KINDS["full_backward"], "OB-04")


def test_a_case_that_conforms_is_refused() -> None:
    wanted = Wanted(MIXED, "by hand", "nested", "OB-06", "full_backward")
    with pytest.raises(HookcheckError, match="OB-06 with full_backward conforms on torch"):
        of_a_network(wanted, "cpu", lambda tried: None)
