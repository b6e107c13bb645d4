"""Does a matrix run what is missing, leave what stands, and say why a release was not run?"""

from __future__ import annotations

from pathlib import Path

import pytest

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.verdict import NOT_RUN
from hookcheck.errors import HookcheckError
from hookcheck.releases import releases
from hookcheck.run import matrix as module
from hookcheck.run.matrix import CONFORMS, DEVIATES, THERE, Matrix, chosen

TOX = """
import pathlib, sys
notest, reports = "--notest" in sys.argv, pathlib.Path({reports!r})
environment = pathlib.Path(".tox") / sys.argv[sys.argv.index("-e") + 1]
environment.mkdir(parents=True, exist_ok=True)
if notest:
    print("error: No solution found when resolving dependencies\\n  cause: Because there is no version of torch==1.8.0")
    sys.exit({install})
(reports / "records").mkdir(parents=True, exist_ok=True)
if {writes}:
    (reports / "records" / "torch-1.8.0-cpu.jsonl.gz").write_bytes(b"new")
print("=== 1 failed, 2 passed in 1.00s ===")
sys.exit({tests})
"""


def ran(folder: Path, monkeypatch: pytest.MonkeyPatch, keep: bool = False, **of_tox: int) -> module.Outcome:
    """What becomes of torch 1.8.0 with a tox that ends with these exit codes."""
    settings = {"install": 0, "tests": 0, "writes": 1, **of_tox}
    (folder / "tox.py").write_text(TOX.format(reports=str(folder / "reports"), **settings))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return Matrix(folder, folder / "reports", {}, keep, again=False).run("1.8.0")


def test_a_release_that_conforms_or_deviates_leaves_a_record_and_no_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = ran(tmp_path, monkeypatch)
    assert (outcome.outcome, outcome.reason) == (CONFORMS, "")
    assert Path(outcome.record).name == "torch-1.8.0-cpu.jsonl.gz"
    assert not (tmp_path / ".tox" / "torch1.8.0").exists()
    assert (tmp_path / ".tox" / "matrix" / "torch1.8.0.log").exists()
    outcome = ran(tmp_path, monkeypatch, tests=1, keep=True)
    assert (outcome.outcome, outcome.reason) == (DEVIATES, "1 failed, 2 passed in 1.00s")
    assert (tmp_path / ".tox" / "torch1.8.0").exists()


def test_what_was_not_run_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = ran(tmp_path, monkeypatch, install=1)
    assert outcome.outcome == NOT_RUN
    why = "error: No solution found when resolving dependencies: Because there is no version of torch==1.8.0"
    assert outcome.reason == f"its environment cannot be made: {why}"
    assert ran(tmp_path, monkeypatch, tests=4).reason.startswith("pytest ended with exit code 4")
    assert ran(tmp_path, monkeypatch, writes=0).outcome == NOT_RUN


def test_a_record_that_stands_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "read", lambda path: path)
    monkeypatch.setattr(module, "is_current", lambda record, corpus: True)
    assert Matrix(tmp_path, tmp_path, {}, False, again=False).run("1.8.0").outcome == THERE


def test_the_committed_records_are_current_only_with_todays_corpus_and_clauses() -> None:
    root = Path(__file__).parents[2]
    record = module.read(root / "reports" / "records" / "torch-2.13.0-cpu.jsonl.gz")
    corpus = {family: file.digest for family, file in record.header.plan.corpus.items()}
    clauses = [clause.id for clause in record.header.plan.clauses]
    assert module.is_current(record, corpus) == (clauses == [*module.CLAUSES])
    assert not module.is_current(record, {**corpus, "single-node": "other"})


def test_releases_are_chosen_by_name_and_share() -> None:
    every = tuple(release.torch for release in releases())
    assert chosen(()) == every
    assert sorted(name for number in range(1, 6) for name in chosen((), (number, 5))) == sorted(every)
    assert chosen(["nightly", "1.8.0"]) == ("nightly", "1.8.0")
    with pytest.raises(HookcheckError, match=r"no release '2\.6\.1' in the list; choose from 2\.6\.0"):
        chosen(["2.6.1"])
    with pytest.raises(HookcheckError, match="no share 3 of 2"):
        chosen((), (3, 2))
