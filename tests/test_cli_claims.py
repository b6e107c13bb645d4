"""Does ``hookcheck claims`` answer each claim as torch does, on every release that the ledger tells apart?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from record import samples
from test_cli import NO_TORCH, asked, in_process, lines

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.claims import HOLDS, PARTLY, REFUTED, answers, claims
from hookcheck.contract.clause import CLAUSES, Clause
from hookcheck.contract.ledger import Entry, load
from hookcheck.programs.facts import facts_of
from hookcheck.programs.program import Program
from hookcheck.record.writing import write as write_record

IDS = [
    *(f"P2-{n}" for n in range(1, 11)),
    "P2-13",
    *("QA-1", "QA-2", "QA-3"),
    *("TT-1", "TT-2", "TT-3", "TT-4", "TT-5", "TT-6", "TT-8", "ZH-1", "PW-2", "PW-3", "PW-4"),
    *(f"SYS-0{n}" for n in range(1, 7)),
]
CLAIM = CLAUSES["P2-1"]
ENTRY = next(entry for entry in load() if "P2-3" in entry.clauses)


def entry(torch: str, *facts: str) -> Entry:
    when = (("fact", facts),) if facts else ()
    return replace(ENTRY, clauses=("P2-1",), torch=SpecifierSet(torch), when=when)


RAN = ("1.7.1", "1.8.0", "1.9.1", "1.13.1", "2.0.1", "2.6.0")


def answers_by(*entries: Entry) -> list[tuple[str, tuple[str, ...]]]:
    return [(answer.answer, answer.torch) for answer in answers(CLAIM, entries, reversed(RAN))]


def test_every_claim_is_answered() -> None:
    rows = lines("claims")
    assert list(dict.fromkeys(row["id"] for row in rows)) == IDS
    for row in rows:
        claim = CLAUSES[row["id"]]
        assert (row["statement"], row["source"]) == (claim.statement, claim.source)


def test_an_answer_for_each_stretch_of_releases_that_were_run() -> None:
    releases = {(row["id"], row["answer"]): row["torch"] for row in lines("claims")}
    ran = releases["P2-1", "holds"]
    assert ran[:3] == ["1.7.1", "1.8.0", "1.8.1"]
    assert releases["P2-7", "refuted"] == ["1.8.0", "1.8.1"]
    assert releases["P2-7", "holds"] == ran[3:]
    assert releases["P2-9", "partly"] == [name for name in ran if Version(name) >= Version("1.13")]
    assert releases["QA-2", "refuted"] == ran
    assert releases["TT-5", "holds"] == [name for name in ran if Version(name) < Version("2.1")]


def test_nothing_is_said_of_releases_that_were_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookcheck.suite.published_reports", lambda: tmp_path / "published")
    (tmp_path / "records").mkdir()
    code, _, err = asked("claims", "--reports", str(tmp_path))
    assert code == 2
    assert "a claim is answered for releases that were run" in err
    record = samples.record()
    planned = replace(record.header.plan.clauses[0], id="P2-1")
    plan = replace(record.header.plan, clauses=(*record.header.plan.clauses, planned))
    torch_of = replace(record.header.torch, version="1.8.0")
    write_record(replace(record, header=replace(record.header, plan=plan, torch=torch_of)), tmp_path / "records")
    rows = lines("claims", "--reports", str(tmp_path))
    assert {name for row in rows for name in row["torch"]} == {"1.8.0"}
    assert {row["id"] for row in rows if row["answer"] != "not run"} == {"P2-1"}
    assert {row["id"] for row in rows if row["answer"] == "not run"} > {"P2-2", "SYS-01", "SYS-06"}


def test_people_see_all_of_it() -> None:
    code, out, _ = asked("claims", "--format", "pretty")
    assert code == 0
    for row in lines("claims"):
        assert all(word in out for word in (row["id"], row["answer"], *row["torch"], *row["statement"].split()))
    assert "\x1b" not in out


def test_the_help_documents_the_fields() -> None:
    code, out, _ = asked("claims", "--help")
    assert code == 0
    assert all(f"  {field}: " in out for field in ("id", "statement", "answer", "torch", "source"))


def test_it_needs_no_torch() -> None:
    done = in_process("claims", "--format", "json", code=NO_TORCH)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == asked("claims", "--format", "json")[1]


def test_entries_make_the_answer() -> None:
    assert answers_by() == [(HOLDS, RAN)]
    assert answers_by(entry(">=1.7")) == [(REFUTED, RAN)]
    assert answers_by(entry(">=1.7", "a fact")) == [(PARTLY, RAN)]
    assert answers_by(entry(">=1.6,<1.9")) == [(REFUTED, RAN[:2]), (HOLDS, RAN[2:])]
    assert answers_by(entry(">=1.9,<1.13"), entry(">=1.9,<2.0", "a fact"), entry(">=2.0,<2.4", "another")) == [
        (HOLDS, RAN[:2]), (REFUTED, RAN[2:3]), (PARTLY, RAN[3:5]), (HOLDS, RAN[5:]),
    ]  # fmt: skip
    assert answers_by(replace(entry(">=1.7"), clauses=("P2-2",))) == [(HOLDS, RAN)]


@pytest.mark.parametrize("claim", claims(), ids=lambda claim: claim.id)
def test_the_answer_is_what_torch_does(claim: Clause) -> None:
    assert isinstance(claim, Program)
    here = Version(Version(torch.__version__).base_version)
    said = answers(claim, load(), [str(here)])
    if here < Version(claim.since):
        assert not said
        return
    wrong: list[Any] = [fact.finding is not None for fact in facts_of(claim, "cpu")]
    (answer,) = said
    assert answer.answer == (REFUTED if all(wrong) else PARTLY if any(wrong) else HOLDS)
