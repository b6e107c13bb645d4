"""Does a script say of torch what the judge says? It fails where the judge finds a deviation, and passes where that is
mended."""

from __future__ import annotations

import ast
import sys
from functools import lru_cache
from pathlib import Path
from random import Random

import pytest
import torch

from hookcheck.contract.ledger import Ledger
from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import KINDS, HookKind
from hookcheck.probe.run import lacking
from hookcheck.record.model import Folded, record_name
from hookcheck.record.reading import read_folded
from hookcheck.repro.cells import Wanted, in_record
from hookcheck.repro.choice import chosen
from hookcheck.repro.reduce import reduced
from hookcheck.repro.report import of_a_network
from hookcheck.repro.sighting import Sighting, sightings, unable
from hookcheck.suite import conformance_folder
from hookcheck.topology.model import Topology

from .broken import CHANGES, NEW_CHANGES, REGISTRATIONS, broken, changed
from .cases import MIXED, ON_NETWORKS, executed

REPORTS = Path(__file__).parents[2] / "reports"
RECORD = REPORTS / "records" / record_name(str(torch.__version__), "cpu")
NO_SCRIPT = {"TN-03/context/output_tensor": "inside vmap registering raises, which ends the script before its question"}
"""Cells that have no script yet, and why."""

DRAWN = 6
"""So many deviating cells of the record are drawn."""


def limits(text: str) -> None:
    """A script is short, and needs torch and the standard library alone."""
    lines = text.split("\n")
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 100
    assert all(line == line.rstrip() for line in lines)
    names = {alias.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for alias in node.names}
    assert {name.partition(".")[0] for name in names} <= {"torch", *getattr(sys, "stdlib_module_names", names)}
    assert "hookcheck" not in text


@lru_cache(maxsize=1)
def record() -> Folded:
    return read_folded(RECORD)


def deviating() -> list[str]:
    """Cells of the record, drawn with a fixed seed, one a clause as far as they go."""
    if not RECORD.exists():
        return []
    found: dict[str, list[str]] = {}
    for group in record().alike:
        for deviation in group.deviations:
            for kind in group.kinds if deviation.clause in ON_NETWORKS else ():
                found.setdefault(deviation.clause, []).append(f"{deviation.clause}/{group.family}/{kind}")
    draw = Random(0)
    cells = [draw.choice(sorted(set(cells))) for _, cells in sorted(found.items())]
    return draw.sample(cells, min(DRAWN, len(cells)))


@pytest.mark.skipif(not RECORD.exists(), reason="there is no record of this torch")
@pytest.mark.parametrize("cell", deviating())
def test_a_deviating_cell_of_the_record(cell: str, request: pytest.FixtureRequest) -> None:
    if cell in NO_SCRIPT:
        request.applymarker(pytest.mark.xfail(reason=NO_SCRIPT[cell], strict=True))
    wanted = in_record(cell, record(), conformance_folder() / "corpus", REPORTS)
    text = of_a_network(wanted, "cpu", lambda tried: None).script
    limits(text)
    assert executed(text)[0] == 1


def shown(topology: Topology, kind: HookKind, clause: str) -> str:
    """The script of what deviates now, for no reason that the ledger knows."""

    def seen(case: Topology, hook: HookKind) -> list[Sighting]:
        if unable(case, hook) or hook.name not in ON_NETWORKS[clause].kinds:
            return []
        return sightings(case, "by-hand", hook, ON_NETWORKS[clause], Ledger(()))

    symptom = seen(topology, kind)[0].symptom
    found = reduced(topology, kind, lambda case, hook: any(s.symptom == symptom for s in seen(case, hook)))
    return chosen(next(sighting for sighting in seen(*found) if sighting.symptom == symptom)).text


@pytest.mark.parametrize("how", ["calls twice", "wrong grad_input", "one grad_output more", "never calls", "keeps"])
def test_a_broken_torch_and_a_mended_one(how: str) -> None:
    clause = {**CHANGES, **REGISTRATIONS}[how][1].split()[0]
    with broken("register_full_backward_hook", how):
        text = shown(MIXED, KINDS["full_backward"], clause)
        limits(text)
        assert executed(text)[0] == 1
    assert executed(text)[0] == 0


@pytest.mark.parametrize("how", ["tensor hook gets other values", "output hook is never called"])
def test_a_torch_that_calls_other_kinds_otherwise(how: str) -> None:
    kind, change, clauses = NEW_CHANGES[how]
    if lacking(kind):
        pytest.skip(lacking(kind))
    with changed(KINDS[kind], change):
        text = shown(MIXED, KINDS[kind], clauses.split()[0])
        limits(text)
        assert executed(text)[0] == 1
    assert executed(text)[0] == 0


def test_a_case_that_conforms_is_refused() -> None:
    wanted = Wanted(MIXED, "by hand", "nested", "OB-06", "full_backward")
    with pytest.raises(HookcheckError, match="OB-06 with full_backward conforms on torch"):
        of_a_network(wanted, "cpu", lambda tried: None)
