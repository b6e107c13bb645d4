"""Scripts of the causes of networks in the record of this torch: right, and as short as a person would make them?

`tests/test_script_lengths.py` looks at the lengths of all, once they are made.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import pytest
import torch

from hookcheck.contract.ledger import load
from hookcheck.contract.verdict import PROGRAM
from hookcheck.errors import HookcheckError
from hookcheck.releases.numbers import release
from hookcheck.report.archive import archive
from hookcheck.report.causes import Cause, causes
from hookcheck.repro.formatting import WIDTH
from hookcheck.repro.heading import LONGEST
from hookcheck.run.reproduction import reduced_script
from hookcheck.suite import conformance_folder

from .test_agreement import RECORD, is_right, record

ROUNDED = "other rounding"


@lru_cache(maxsize=1)
def recorded() -> Mapping[str, list[Cause]]:
    """The causes of each clause in the record of this torch, without what shows now and then; none where there is no
    record."""
    varying = {entry.id for entry in load() if entry.varies}
    all_causes = causes(archive([record()])) if RECORD.exists() else {}
    return {clause: [cause for cause in those if cause.ledger not in varying] for clause, those in all_causes.items()}


@lru_cache(maxsize=1)
def one_an_entry() -> dict[str, Cause]:
    """For each entry of the ledger, and each way to deviate that none explains, a cause of a clause that has few."""
    by_name: dict[str, list[Cause]] = defaultdict(list)
    for cause in (cause for those in recorded().values() for cause in those):
        if cause.example.family != PROGRAM:
            by_name[cause.name].append(cause)
    times: Counter[str] = Counter()
    result: dict[str, Cause] = {}
    for name, those in sorted(by_name.items(), key=lambda item: len(item[1])):
        cause = min(those, key=lambda cause: times[cause.clause])
        times[cause.clause] += 1
        result[f"{cause.clause}-{name}"] = cause
    return result


HARD = (
    "AL-01/multi-grad-hooks-of-leaves-that-are-asked-for", "DD-16/pytorch-185331",
    "DT-01/absent-gradient-of-a-redistributed-tensor-raises",
    "DT-09/loss-parallel-takes-each-softmax-for-a-loss", "HO-01/fuse-modules-doubles-hooks",
    "HO-01/quantising-loses-backward-and-state-hooks", "HO-08/newer-weight-norm-loses-hooks-of-the-weight",
    "HO-10/fusing-loses-with-kwargs",
    "HO-10/quantising-calls-hooks-without-kwargs", "HO-10/quantising-loses-always-call",
    "HO-10/quantising-loses-with-kwargs", "LT-11/what-waits-outlasts-a-backward-that-fails",
    "MT-03/comm-debug-mode-calls-no-module-twice", "PW-3/claim-hooks-on-parameters-are-left-out",
)  # fmt: skip
"""Causes of which a control is hard to come by, or to write within the limit."""

FOUND_SINCE = (2, 13)
"""Since which torch each of them has one; on an older one nothing beside it may be so."""


def with_controls() -> set[str]:
    """The clauses of `HARD` causes that the record of this torch has."""
    return {clause for clause, those in recorded().items() if any(f"{clause}/{cause.name}" in HARD for cause in those)}


@lru_cache(maxsize=1)
def further() -> dict[str, Cause]:
    """The last cause of the programs that have several; of the first fact of each that is not so `test_slicing` has a
    test, of those that are `HARD` the test of their controls."""
    programs = {clause: those for clause, those in recorded().items() if those and those[0].example.family == PROGRAM}
    last = {f"{clause}/{those[-1].name}": those[-1] for clause, those in programs.items() if len(those) > 1}
    return {name: cause for name, cause in last.items() if name not in HARD}


@pytest.mark.slow
@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", further())
def test_the_script_of_a_further_cause_of_a_program(name: str) -> None:
    text = reduced_script(further()[name], conformance_folder() / "corpus")
    assert text.count("\n") <= LONGEST
    assert max(map(len, text.split("\n"))) <= WIDTH


@pytest.mark.slow
@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", HARD)
def test_the_script_of_a_program_has_a_control(name: str) -> None:
    clause, _, of = name.partition("/")
    cause = next((cause for cause in recorded().get(clause, ()) if cause.name == of), None)
    if cause is None:
        pytest.skip("this torch does not show it")
    text = reduced_script(cause, conformance_folder() / "corpus")
    assert text.count("\n") <= LONGEST
    assert max(map(len, text.split("\n"))) <= WIDTH
    assert "# no control" not in text or release(torch.__version__) < FOUND_SINCE


def lengths(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file for each script that was made, of its number of lines; all processes of a run share it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "lengths"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.mark.slow
@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", one_an_entry())
def test_the_script_of_a_cause(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """It is not run in a process of its own here: `hookcheck report --scripts` does so with each that it keeps."""
    cause = one_an_entry()[name]
    try:
        text = reduced_script(cause, conformance_folder() / "corpus")
    except HookcheckError as error:
        hidden = {"compiled": "what was compiled before hides it"}.get(cause.example.family, "")
        if cause.gaps == (ROUNDED,):
            hidden = "the machine of the record rounds otherwise, and this one need not"
        if hidden and "there is nothing to reproduce" in str(error):
            pytest.skip(hidden)
        raise
    is_right(text)
    number = [*one_an_entry()].index(name)
    (lengths(tmp_path_factory) / str(number)).write_text(str(text.count("\n")), encoding="utf-8")
