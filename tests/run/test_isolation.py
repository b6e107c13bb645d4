"""Nothing lost: whatever befalls the process that runs torch, one case is lost, and all others are as they were."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from hookcheck.contract.verdict import CRASHED, RAN, TIMED_OUT, CaseResult
from hookcheck.record.model import Record

from .planted_deaths import CHAPTERS, DEATHS, FAMILY, IN_BUILD, IN_HOOK, KIND, PROGRAMS, strikes_explored
from .test_plugin import command, environment, record

KINDS = (KIND, "forward")
ASKED = [
    *("--family", FAMILY, "--family", "program", "--hypothesis-profile", "smoke"),
    *(word for kind in (*KINDS, *CHAPTERS) for word in ("--kind", kind)),
]
PARTS = ("test_networks.py", "test_programs.py", "test_exploration.py")
HERE = Path(__file__).parent


def run(reports: Path, workers: str, planted: bool) -> subprocess.CompletedProcess[str]:
    plugin = ("-p", "tests.run.planted_deaths") if planted else ()
    return subprocess.run(
        command(reports, workers, *plugin, *ASKED, chapters=PARTS),
        env={**environment(HERE.parents[1]), "HOOKCHECK_PLANTED": str(reports)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def processes(mark: str) -> list[str]:
    """The processes that have ``mark`` in the environment that they were started with; none where there is no /proc."""
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (process / "environ").read_text(errors="replace"):
                commands.append((process / "cmdline").read_text(errors="replace"))
    return commands


def by_key(run_record: Record) -> dict[tuple[str, str], CaseResult]:
    return {(case.topology, case.kind): case for case in run_record.cases if case.origin == "corpus"}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Record:
    reports = tmp_path_factory.mktemp("sound")
    result = run(reports, "-n2", planted=False)
    assert result.returncode == 0, result.stdout
    return record(reports / "partial")


def due() -> dict[tuple[str, str], tuple[str, str]]:
    """How each case is to end in which something was planted: its outcome, and a part of the reason."""
    ends = {name: (outcome, says) for name, (_, outcome, says) in DEATHS.items()}
    ends["exception"] = (CRASHED, "let out AssertionError: of hookcheck itself")
    chapter = {id: kind for kind in CHAPTERS for id in PROGRAMS}
    by_case = {(id, KIND): ends[name] for id, name in IN_HOOK.items()}
    by_case.update({(id, kind): ends[name] for id, name in IN_BUILD.items() for kind in KINDS})
    by_case.update({(id, ""): ends[name] for id, name in PROGRAMS.items() if id in chapter})
    return by_case


@pytest.mark.slow
@pytest.mark.one_in(3)
@pytest.mark.parametrize("workers", ["-n2", "-n1", "-n0"])
def test_each_death_takes_one_case_along_and_no_other(sound: Record, tmp_path: Path, workers: str) -> None:
    result = run(tmp_path, workers, planted=True)
    assert result.returncode == 1, result.stdout + result.stderr
    run_record = record(tmp_path / "partial")
    assert run_record.footer.complete
    before, after = by_key(sound), by_key(run_record)
    assert before.keys() == after.keys()
    planted = due()
    for (id, kind), case in after.items():
        end = planted.get((id, kind)) or planted.get((id, ""))
        if end is None:
            assert (case.outcome, case.judged) == (before[id, kind].outcome, before[id, kind].judged)
            assert [d.ledger for d in case.deviations] == [d.ledger for d in before[id, kind].deviations]
        else:
            assert (case.outcome, end[1] in case.reason) == (end[0], True), case
    assert run_record.footer.explored == sound.footer.explored
    explored = [case for case in run_record.cases if case.origin == "exploration"]
    assert explored
    for case in explored:
        assert case.kind == KIND
        assert case.outcome in (CRASHED, TIMED_OUT)  # a crash takes long to tell on a machine that is busy
        assert DEATHS[strikes_explored(case.topology)][2] in case.reason
    contents = {counterexample.topology for counterexample in run_record.counterexamples}
    assert {case.topology for case in explored} <= contents
    assert not [*tmp_path.glob(".partial-*")]
    assert not processes(str(tmp_path))
    assert f"{sum(case.outcome == TIMED_OUT for case in run_record.cases)} timed out" in result.stdout
    assert {case.outcome for case in run_record.cases} == {RAN, CRASHED, TIMED_OUT}
