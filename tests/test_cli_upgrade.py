"""Does ``hookcheck upgrade`` answer from records, make those that are missing, and refuse in one line?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from test_cli import asked, lines
from test_cli_diff import WARNED, WRONG, case, of

from hookcheck.record.writing import write
from hookcheck.releases import Release


@pytest.fixture(autouse=True)
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records of three releases, and their support data."""
    folder = tmp_path / "reports" / "records"
    monkeypatch.setattr("hookcheck.suite.published_reports", lambda: tmp_path / "published")
    monkeypatch.chdir(tmp_path)
    write(of("2.9.0", case("aaaa"), case("bbbb")), folder)
    write(of("2.10.0", case("aaaa", WRONG), case("bbbb", WARNED)), folder)
    write(of("2.11.0", case("aaaa"), case("bbbb", WARNED)), folder)
    assert asked("support", "--write")[0] == 0
    return folder


@pytest.mark.parametrize(
    ("arguments", "code", "verdict"),
    [
        (["--from", "2.9.0", "--to", "2.10.0"], 1, "do not upgrade"),
        (["--from", "2.9.0", "--to", "2.11.0"], 0, "safe with notes"),
        (["--from", "2.10.0", "--to", "2.11.0", "--kinds", "backward"], 0, "safe"),
    ],
)
def test_the_exit_code_says_what_the_rows_say(arguments: list[str], code: int, verdict: str) -> None:
    first, *others = lines("upgrade", *arguments, code=code)
    assert (first["what"], first["verdict"], first["compared"]) == ("verdict", verdict, 2)
    assert {row["what"] for row in others} >= {"count", "answer"}
    status, out, _ = asked("upgrade", *arguments, "--format", "markdown")
    assert (status, out.splitlines()[0].rpartition(": ")[2]) == (code, verdict)
    assert verdict in asked("upgrade", *arguments, "--format", "pretty")[1]


def test_a_minor_version_stands_for_its_newest_patch() -> None:
    first, *_ = lines("upgrade", "--from", "2.9", "--to", "2.10", code=1)
    assert (first["earlier"]["torch"], first["later"]["torch"]) == ("2.9.0+cpu", "2.10.0+cpu")
    assert "torch==2.2.2" in asked("upgrade", "--from", "2.2", "--to", "2.10", "--no-run")[2]


def test_ones_own_model_is_run_on_both(monkeypatch: pytest.MonkeyPatch) -> None:
    from hookcheck.models.across import Across, Difference

    seen: list[Any] = []

    def across(*arguments: Any) -> Across:
        seen.append(arguments[:4])
        worse = Difference(True, "silent", "full_backward", "BW-01", ("fc",), "conforms", "wrong values")
        return Across({"2.9.0": (), "2.11.0": ()}, (worse,))

    monkeypatch.setattr("hookcheck.models.across.across", across)
    options = ["--from", "2.9.0", "--to", "2.11.0", "--check", "package.module:make"]
    first, *others = lines("upgrade", *options, "--with", "numpy<2", "--kinds", "full_backward", code=1)
    assert first["verdict"] == "do not upgrade"
    assert seen == [("package.module:make", ["2.9.0", "2.11.0"], ["numpy<2"], ["--kinds", "full_backward"])]
    assert [row["text"] for row in others if row["what"] == "own model"] == [
        "full_backward BW-01 on fc: conforms → wrong values"
    ]
    status, _, error = asked("upgrade", "--from", "2.9.0", "--to", "2.11.0", "--with", "numpy")
    assert (status, "name your model" in error) == (2, True)


def test_what_cannot_end_well_is_refused_before_minutes_go_into_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> Any:
        raise AssertionError("an environment was made")

    monkeypatch.setattr("hookcheck.releases.environment.environment", fail)
    (tmp_path / "file").write_text("")
    ends = ["--from", "2.9.0", "--to", "2.4.1"]
    status, _, error = asked("upgrade", *ends, "--reports", str(tmp_path / "file" / "reports"))
    assert (status, error.count("\n"), "cannot be written" in error) == (2, 1, True)
    status, _, error = asked("upgrade", *ends, "--check", "package.module")
    assert (status, error.count("\n"), "write as package.module:make" in error) == (2, 1, True)


def test_the_page_fits_forty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    out = asked("upgrade", "--from", "2.9.0", "--to", "2.10.0", "--format", "pretty")[1]
    assert max(map(len, out.splitlines())) <= 40


def test_call_sites(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("net.register_backward_hook(print)\nnet.register_forward_hook(print)\n")
    rows = lines("upgrade", "--from", "2.9.0", "--to", "2.10.0", "--code", "mine.py", code=1)
    sites = {(row["line"], row["kind"]): row["text"] for row in rows if row["what"] == "call site"}
    assert sites[1, "backward"] == "change 1, 2"
    assert not any(kind == "forward" for _, kind in sites)


def test_a_missing_record_is_made_in_an_environment(records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    @contextmanager
    def environment(release: Release, packages: list[str]) -> Iterator[Path]:
        calls.append((release, packages))
        yield Path(sys.executable)

    def ran(command: list[str], **_: Any) -> Any:
        calls.append(command)
        if "2.12.1" in str(calls[0][0]):
            write(of("2.12.1", case("aaaa"), case("bbbb", WARNED)), records)
        return type("Done", (), {"returncode": 3})

    monkeypatch.setattr("hookcheck.releases.environment.environment", environment)
    monkeypatch.setattr("hookcheck.cli.upgrade.subprocess.run", ran)
    code, out, err = asked("upgrade", "--from", "2.11.0", "--to", "2.12.1", "--format", "markdown")
    assert (code, out.splitlines()[0]) == (0, "# torch 2.11.0+cpu → 2.12.1+cpu: safe")
    assert err == "hookcheck: torch 2.12.1 has no record: making an environment, then running the suite on it\n"
    assert calls[0][0].python == "3.12"
    assert calls[1][1:4] == ["-m", "hookcheck", "run"]
    calls.clear()
    code, out, err = asked("upgrade", "--from", "2.11.0", "--to", "2.14.1")
    assert (code, out) == (2, "")
    assert "the run on torch 2.14.1 left no record (exit code 3)" in err.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--from", "2.9.0"], "Missing option '--to'"),
        (["--from", "2.9.0", "--to", "newest"], "'newest' is no version of torch; write one as 2.6.0"),
        (["--from", "1.2.0", "--to", "2.9.0"], "torch 1.2.0 is older than 1.7.1"),
        (["--from", "2.9.0", "--to", "gone.jsonl"], "gone.jsonl: cannot be read"),
        (["--from", "2.9.0", "--to", "2.10.0", "--kinds", "bckward"], "did you mean backward"),
        (["--from", "2.9.0", "--to", "2.10.0", "--code", "gone"], "gone is not there"),
        (["--from", "2.9.0", "--to", "2.6.0", "--no-run"], "with Python 3.11 and torch==2.6.0 run `hookcheck run"),
    ],
)
def test_wrong_input_is_one_line(arguments: list[str], words: str) -> None:
    code, out, err = asked("upgrade", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_records_of_a_run_that_was_cut_short_are_refused(records: Path) -> None:
    from record.samples import record as cut

    path = write(cut(), records.parent / "cut")
    code, _, err = asked("upgrade", "--from", "2.9.0", "--to", str(path))
    assert (code, "cut short" in err) == (2, True)
