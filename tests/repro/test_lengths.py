"""Scripts of all causes of networks in the record of this torch: as short as a person would make them?"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from statistics import median

import pytest
import torch

from hookcheck.contract.ledger import load
from hookcheck.contract.verdict import PROGRAM
from hookcheck.record.model import public_version
from hookcheck.report.archive import archive
from hookcheck.report.causes import Cause, causes
from hookcheck.run.reproduction import make
from hookcheck.suite import conformance_folder

from .cases import limits
from .test_agreement import RECORD, record

MEDIAN = 35
"""So many lines scripts of networks have at most in the middle."""

ENOUGH = 20
"""So many of them show a median; where several processes share the tests, each looks at its own."""


@lru_cache(maxsize=1)
def of_networks() -> dict[str, Cause]:
    """The causes by clause and name; not those that show now and then."""
    if not RECORD.exists():
        return {}
    varying = {entry.id for entry in load() if entry.varies}
    every = (cause for those in causes(archive([record()])).values() for cause in those)
    shown = (cause for cause in every if cause.example.family != PROGRAM and cause.ledger not in varying)
    return {f"{cause.clause}-{cause.name}": cause for cause in shown}


@lru_cache(maxsize=1)
def lengths() -> dict[str, int]:
    """How many lines each has that was made here."""
    return {}


@pytest.mark.slow
@pytest.mark.parametrize("name", of_networks())
def test_the_script_of_a_cause_is_short(name: str, tmp_path: Path) -> None:
    corpus = conformance_folder() / "corpus"
    (result,) = make([of_networks()[name]], tmp_path, corpus, public_version(str(torch.__version__)))
    if of_networks()[name].example.family == "compiled" and "there is nothing to reproduce" in result.why:
        pytest.skip("what was compiled before hides it")
    assert result.why == ""
    (path,) = tmp_path.glob("*/*.py")
    text = path.read_text(encoding="utf-8").partition("\n")[2].rstrip("\n")  # less where it is from
    limits(text)
    lengths()[name] = text.count("\n") + 1


@pytest.mark.slow
def test_half_of_them_are_shorter_than_people_ask_for() -> None:
    if len(lengths()) < ENOUGH:
        pytest.skip("too few were made here")
    assert median(lengths().values()) <= MEDIAN, sorted(lengths().items(), key=lambda item: item[1])
