"""Do repro, verify and bisect answer as they document, and refuse in one line what they cannot answer?"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from repro.cases import LINEAR, SHARED, executed, record_with

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.cli import main
from hookcheck.record.model import public_version, record_name
from hookcheck.record.writing import write as write_record
from hookcheck.repro import choice
from hookcheck.repro.verify import Verdict
from hookcheck.topology.codec import canonical, identify
from hookcheck.topology.corpus import write
from hookcheck.topology.families import FAMILIES

VERSION = public_version(str(torch.__version__))
OF_LINEAR = [identify(LINEAR), "--clause", "GI-01", "--kind", "backward"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, a corpus of two topologies, and no look at the environment, which takes long."""
    for family in FAMILIES:
        write(tmp_path / "conformance" / "corpus", family, [LINEAR, SHARED] if family == "multi-node" else [])
    monkeypatch.setattr("hookcheck.suite.conformance_folder", lambda: tmp_path / "conformance")
    monkeypatch.setattr("hookcheck.suite.published_reports", lambda: tmp_path / "published")
    monkeypatch.setattr("hookcheck.repro.report.collected", lambda: "PyTorch version: such")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ran_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script runs in this process, which need not start: `test_a_topology` has it run in one of its own."""

    def here(path: Path, version: str, runs: int, limit: float) -> Verdict:
        shows = executed(path.read_text(encoding="utf-8"))[0] == 1
        return Verdict(version, "shows" if shows else "as documented", "", int(shows), runs)

    monkeypatch.setattr("hookcheck.repro.verify.here", here)


def asked(*arguments: str, given: str | None = None) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    done = CliRunner().invoke(main, arguments, prog_name="hookcheck", input=given)
    return done.exit_code, done.stdout, done.stderr


def test_a_topology(folder: Path) -> None:
    code, out, err = asked("repro", *OF_LINEAR, "-o", "there", "--runs", "2")
    assert (code, err) == (0, f"running the script on torch {VERSION} …\n")
    assert out.splitlines()[1:3] == [f"torch {VERSION}: shows", f"there/repro.py ({_lines(folder)} lines)"]
    issue = (folder / "there" / "issue.md").read_text(encoding="utf-8")
    title = "register_backward_hook on Linear: grad_input[0] has another shape than it should"
    assert out.startswith(f"{title}\n")
    for part in (
        f"# {title}", "### 🐛 Describe the bug", "### Versions", "PyTorch version: such",
        "2 of 2 runs", "raise SystemExit(",
        "grad_input[i] is the gradient with respect to the i-th positional argument",
        "control: (", f"| {VERSION} | shows |",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_full_backward_hook",
    ):  # fmt: skip
        assert part in issue, part


def _lines(folder: Path) -> int:
    return (folder / "there" / "repro.py").read_text(encoding="utf-8").count("\n")


@pytest.mark.usefixtures("ran_here")
def test_ways_to_name_it(folder: Path) -> None:
    rows = []
    Path("one.json").write_text(canonical(LINEAR), encoding="utf-8")
    for case, given in ((OF_LINEAR[0][:12], None), ("one.json", None), ("-", canonical(LINEAR))):
        arguments = ["repro", case, *OF_LINEAR[1:], "--runs", "1", "--format", "json"]
        code, out, _ = asked(*arguments, given=given)
        assert code == 0
        rows.append(json.loads(out))
    assert rows[0] == rows[1] == rows[2]
    assert rows[0]["folder"] == f"GI-01-{OF_LINEAR[0][:8]}"
    assert Path(rows[0]["folder"], "repro.py").exists()


def _record(folder: Path, version: str, reports: str = "reports") -> Path:
    record = record_with(LINEAR)
    header = replace(record.header, torch=replace(record.header.torch, version=version))
    return write_record(replace(record, header=header), folder / reports / "records")


@pytest.mark.usefixtures("ran_here")
def test_a_cell_of_a_record(folder: Path) -> None:
    _record(folder, str(torch.__version__))
    for cell in ("GI-01/multi-node/backward", "GI-01"):
        code, out, _ = asked("repro", cell, "--runs", "1", "--format", "json")
        assert (code, json.loads(out)["case"]) == (0, identify(LINEAR))
        assert (
            Path(json.loads(out)["folder"], "issue.md").read_text(encoding="utf-8").count(f"fails on: {VERSION}.") == 1
        )


def test_a_cell_that_conforms_in_a_record_names_one_that_does_not(folder: Path) -> None:
    _record(folder, str(torch.__version__))
    code, _, err = asked("repro", "GI-01/nested/backward")
    assert code == 2
    assert err.strip().endswith("there is nothing to reproduce, but GI-01/multi-node/backward deviates")


@pytest.mark.usefixtures("ran_here")
def test_a_program() -> None:
    code, out, _ = asked("repro", "BS-01", "--runs", "1", "--format", "json")
    assert code == 0
    row = json.loads(out)
    assert (row["folder"], row["clause"], row["kind"]) == ("BS-01", "BS-01", "backward-hook-structures")
    assert subprocess.run([sys.executable, "-I", "BS-01/repro.py"], capture_output=True, check=False).returncode == 1


@pytest.mark.parametrize("clause", ["SI-02", "SM-01", "BW-10"])
def test_a_program_that_a_record_of_cuda_shows_is_not_looked_for_on_the_cpu(clause: str, tmp_path: Path) -> None:
    sound = record_with(LINEAR)
    path = write_record(replace(sound, header=replace(sound.header, device="cuda")), tmp_path)
    code, _, err = asked("repro", clause, "--record", str(path))
    assert code == 2
    assert len(err.strip().split("\n")) == 1
    assert "cuda" in err


@pytest.mark.slow
@pytest.mark.usefixtures("ran_here")
def test_a_program_about_situations() -> None:
    code, out, _ = asked("repro", "SI-02/program/situations", "--runs", "1", "--format", "json")
    assert code == 0
    row = json.loads(out)
    assert (row["folder"], row["clause"], row["kind"]) == ("SI-02", "SI-02", "situations")
    assert row["lines"] <= 60
    assert row["title"].partition(",")[0] in Path("SI-02/issue.md").read_text(encoding="utf-8").partition("\n")[0]
    assert subprocess.run([sys.executable, "-I", "SI-02/repro.py"], capture_output=True, check=False).returncode == 1


@pytest.mark.usefixtures("ran_here")
def test_a_cell_of_the_record_that_comes_with_hookcheck(folder: Path) -> None:
    _record(folder, str(torch.__version__), "published")
    code, out, _ = asked("repro", "GI-01/multi-node/backward", "--runs", "1", "--format", "json")
    assert (code, json.loads(out)["case"]) == (0, identify(LINEAR))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["repro", "XX-99/nested/backward"], "unknown clause 'XX-99'"),
        (["repro", "GI-01/nowhere/backward"], "unknown family 'nowhere'; `hookcheck families` shows them all"),
        (["repro", "GI-01/nested/sideward"], "unknown hook kind 'sideward'; choose from"),
        (["repro", "GI-01/nested/tensor"], "clause GI-01 does not speak of tensor; choose from backward"),
        (["repro", "GI-01/nested/backward/more"], "is no cell: write CLAUSE/FAMILY/KIND"),
        (["repro", "GI-01/nested/backward"], f"there is no record of torch {torch.__version__}"),
        (["repro", "ffff"], "'ffff' is no cell and no clause; `hookcheck list` shows the clauses; for a topology give"),
        (["repro", "ffff", *OF_LINEAR[1:]], "has an id that begins with 'ffff'"),
        (["repro", "gone.json", *OF_LINEAR[1:]], "'gone.json' is neither a file nor"),
        (["repro", OF_LINEAR[0], "--clause", "P2-11", "--kind", "full_backward"], "P2-11 does not speak of hook kind"),
        (["repro", OF_LINEAR[0], "--clause", "GO-01", "--kind", "backward"], "conforms on torch"),
        (
            ["repro", OF_LINEAR[0], "--clause", "BS-01", "--kind", "backward"],
            "is a program, which runs on no topology",
        ),
        (["repro", "BS-01", "--clause", "GI-01"], "is itself the clause, a program: leave --clause and --kind out"),
        (["repro", "BF-01"], "BF-01 conforms on torch"),
        (["repro", *OF_LINEAR, "--torch", "9.9.9"], "there is no torch '9.9.9' in the list of releases"),
        (["verify", "gone.py"], "gone.py cannot be read"),
        (["verify", "none.py", "--torch", "9.9.9"], "there is no torch '9.9.9' in the list of releases"),
        (["verify", "none.py", "--torch", ","], "--torch names no release"),
        (["verify", "none.py", "--torch", ""], "--torch names no release"),
        (["repro", "OB-05", "--torch", ""], "--torch names no release"),
        (["verify", "bad.py"], "(bad.py, line 1)"),
        (["verify", "foreign.py"], "foreign.py imports numpy"),
        (["bisect", "none.py", "--good", "9.9.9"], "there is no torch '9.9.9' in the list of releases"),
        (["bisect", "none.py", "--good", "2.6.0", "--bad", "1.13.1"], "or search with --find-fix"),
        (["bisect", "none.py", "--find-fix", "--good", "1.8.0", "--bad", "2.6.0"], "or leave out --find-fix"),
        (["bisect", "bad.py"], "bad.py is not Python"),
    ],
)
def test_wrong_input_is_one_line(arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookcheck.repro.environments.uv", lambda: "uv")
    Path("none.py").write_text("pass\n", encoding="utf-8")
    Path("bad.py").write_text("def bad(:\n", encoding="utf-8")
    Path("foreign.py").write_text("import numpy\n", encoding="utf-8")
    code, out, err = asked(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("hookcheck: error: ")
    assert err.count("\n") == 1
    assert words in err


def test_a_foreign_record(folder: Path) -> None:
    path = _record(folder, "1.8.0")
    code, _, err = asked("repro", "GI-01", "--record", str(path))
    assert code == 2
    assert "the record is of torch 1.8.0, and this is torch" in err
    assert err.count("\n") == 1
    assert path.name == record_name("1.8.0", "cpu")


def test_what_does_not_reproduce_is_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "hookcheck.repro.report.chosen", lambda sighting: choice.chosen(sighting)._replace(text="pass\n")
    )
    code, _, err = asked("repro", *OF_LINEAR, "-o", "there")
    assert code == 2
    assert "the script does not show the fault in a process of its own" in err
    assert not (folder / "there" / "repro.py").exists()


@pytest.mark.parametrize("output", ["file", "file/below"])
def test_a_folder_that_cannot_be_written_is_one_line(output: str, folder: Path) -> None:
    (folder / "file").touch()
    code, _, err = asked("repro", *OF_LINEAR, "-o", output)
    assert code == 2
    assert err.splitlines()[-1].startswith(f"hookcheck: error: cannot write into {output} (")
    assert "choose another folder with --output" in err


def test_what_may_not_be_written_is_said_before_anything_is_reduced(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    for more in ([], ["-o", "below/it"]):
        code, _, err = asked("repro", *OF_LINEAR, *more)
        assert code == 2
        assert err.startswith(f"hookcheck: error: cannot write into {more[-1] if more else '.'} (Permission denied)")
        assert err.count("\n") == 1


def test_verify(folder: Path) -> None:
    Path("one.py").write_text("raise SystemExit(1)\n", encoding="utf-8")
    code, out, _ = asked("verify", "one.py", "--format", "json")
    assert code == 1
    assert json.loads(out) == {
        "torch": VERSION, "verdict": "shows", "why": "", "shows": 1, "runs": 1, "output": "",
    }  # fmt: skip
    Path("one.py").write_text("import time; time.sleep(60)\n", encoding="utf-8")
    code, out, _ = asked("verify", "one.py", "--limit", "1", "--format", "json")
    assert code == 2
    assert (json.loads(out)["verdict"], json.loads(out)["why"]) == ("skip", "still running after 1 s")


def test_no_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    Path("one.py").write_text("pass\n", encoding="utf-8")
    for arguments in (
        ["verify", "one.py", "--torch", "1.13.1"],
        ["bisect", "one.py"],
        ["repro", *OF_LINEAR, "--torch", "1.13.1"],
    ):
        code, _, err = asked(*arguments)
        assert code == 2
        assert "uv is not on PATH" in err


def test_bisect(monkeypatch: pytest.MonkeyPatch) -> None:
    def attempt(script: Path, torch: str, **settings: object) -> Verdict:
        return Verdict(torch, "shows" if int(torch.split(".")[1]) >= 6 and torch.startswith("2") else "as documented")

    monkeypatch.setattr("hookcheck.repro.verify.on", attempt)
    monkeypatch.setattr("hookcheck.repro.environments.uv", lambda: "uv")
    Path("one.py").write_text("pass\n", encoding="utf-8")
    code, out, err = asked("bisect", "one.py", "--good", "2.0.1", "--format", "json")
    row = json.loads(out)
    assert (code, row["before"], row["after"], row["specifier"]) == (0, "2.5.1", "2.6.0", ">=2.6.0,<=2.15.0")
    assert "torch 2.0.1: as documented (at most " in err
    assert "(the last step)" in err
    code, _, err = asked("bisect", "one.py", "--good", "2.15.0", "--bad", "2.0.1", "--find-fix")
    assert code == 2
    assert "without --find-fix the release in which it came is searched" in err


def test_a_script_that_crashes_here_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookcheck.cli.bisect.present", lambda: "2.6.0+cpu")
    monkeypatch.setattr(
        "hookcheck.repro.verify.on", lambda script, torch, **_: Verdict(torch, "skip", "crashed: exit code 7")
    )
    monkeypatch.setattr("hookcheck.repro.environments.uv", lambda: "uv")
    Path("one.py").write_text("raise SystemExit(7)\n", encoding="utf-8")
    code, _, err = asked("bisect", "one.py")
    assert code == 2
    assert "crashes on torch 1.7.1 in the same way as on torch 2.6.0, which is at hand (crashed: exit code 7)" in err
    assert list(json.loads(Path("one.bisect.json").read_text(encoding="utf-8"))["verdicts"]) == ["2.6.0", "1.7.1"]


def test_a_search_that_is_interrupted_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def attempt(script: Path, torch: str, **settings: object) -> Verdict:
        if torch == "2.15.0":
            raise KeyboardInterrupt
        return Verdict(torch, "as documented")

    monkeypatch.setattr("hookcheck.cli.bisect.present", lambda: "")
    monkeypatch.setattr("hookcheck.repro.verify.on", attempt)
    monkeypatch.setattr("hookcheck.repro.environments.uv", lambda: "uv")
    Path("one.py").write_text("pass\n", encoding="utf-8")
    code, _, err = asked("bisect", "one.py")
    assert code == 130
    assert "the verdicts so far are in one.bisect.json: the same command goes on with them" in err
    assert list(json.loads(Path("one.bisect.json").read_text(encoding="utf-8"))["verdicts"]) == ["1.7.1"]
