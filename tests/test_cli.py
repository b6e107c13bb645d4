"""Does the command line answer as it documents, and refuse in one line what it cannot answer?"""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
import torch
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from repro.cases import LINEAR, SHARED, record_with

import hookcheck.clauses  # noqa: F401 -- declares the clauses
import hookcheck.cli as cli
from hookcheck import __version__
from hookcheck.cli.layers import offered
from hookcheck.cli.output import SCHEMAS
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.ledger import load
from hookcheck.contract.left_out import LEFT_OUT
from hookcheck.record.reading import read
from hookcheck.record.writing import write as write_record
from hookcheck.topology.codec import identify
from hookcheck.topology.corpus import write
from hookcheck.topology.excused import EXCUSED
from hookcheck.topology.families import FAMILIES

OTHERS = [identify(SHARED), "--clause", "GI-01", "--kind", "backward"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and a corpus of two topologies."""
    for family in FAMILIES:
        write(tmp_path / "conformance" / "corpus", family, [LINEAR, SHARED] if family == "multi-node" else [])
    monkeypatch.setattr("hookcheck.suite.conformance_folder", lambda: tmp_path / "conformance")
    monkeypatch.setattr("hookcheck.suite.published_reports", lambda: tmp_path / "published")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def record(folder: Path) -> Path:
    return write_record(record_with(LINEAR), folder / "reports" / "records")


def runner() -> CliRunner:
    """A runner that keeps the two streams apart, as click 8.1 does only if told to."""
    has_option = "mix_stderr" in inspect.signature(CliRunner).parameters
    return CliRunner(mix_stderr=False) if has_option else CliRunner()  # type: ignore[call-arg]


def asked(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    result = runner().invoke(cli.main, arguments, prog_name="hookcheck")
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def lines(*arguments: str, code: int = 0) -> list[Any]:
    """The JSON lines of a command, each held against the schema that is documented."""
    status, out, _ = asked(*arguments, "--format", "json")
    assert status == code
    rows = [json.loads(line) for line in out.splitlines()]
    for row in rows:
        schema = next(s for s in SCHEMAS[arguments[0]] if set(s["required"]) == set(row))
        Draft202012Validator(schema).validate(row)
    return rows


def in_process(*arguments: str, code: str = "", **settings: Any) -> subprocess.CompletedProcess[str]:
    """hookcheck in a process of its own, after ``code``."""
    program = f"{code}\nfrom hookcheck.cli import main\nmain(prog_name='hookcheck')"
    source = str(Path(cli.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": source, "PYTHONDONTWRITEBYTECODE": "1"}
    environment = {key: value for key, value in environment.items() if not key.startswith(("PYTEST_", "COV_"))}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, check=False, env=environment, **{"text": True, **settings})


def test_list() -> None:
    rows = lines("list")
    assert [row["id"] for row in rows] == [*CLAUSES, *LEFT_OUT]
    assert rows[0]["statement"] == next(iter(CLAUSES.values())).statement
    code, out, _ = asked("list", "--format", "pretty")
    assert code == 0
    for clause in CLAUSES.values():
        assert clause.id in out
        assert all(word in out for word in clause.statement.split())
    assert "\x1b" not in out
    texts = [text for clause in CLAUSES.values() for text in (clause.statement, clause.source)]
    assert out.count("…") == sum(text.count("…") for text in texts)  # nothing is cut off


def test_faults_that_torch_is_too_old_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookcheck.cli.kill_matrix.OLDEST", (99, 0))
    code, out, err = asked("kill-matrix")
    assert (code, out) == (2, "")
    assert f"the faults are those of torch 99.0 and later; here is torch {torch.__version__}" in err


def test_families() -> None:
    rows = lines("families")
    assert {row["name"]: row["corpus_size"] for row in rows} == {name: 2 * (name == "multi-node") for name in FAMILIES}
    code, out, _ = asked("families", "--format", "pretty")
    assert code == 0
    assert all(name in out for name in FAMILIES)


def test_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    there = offered() - {"Linear"} | {"Novel"}
    monkeypatch.setattr("hookcheck.cli.layers.offered", lambda: there)
    rows = lines("layers")
    states = {row["name"]: (row["state"], row["reason"]) for row in rows}
    assert len(states) == len(rows)
    assert states["ReLU"] == ("covered", "")
    assert states["Linear"] == ("not-offered", "the torch that is installed lacks it")
    assert states["Novel"] == ("left-out", "newer than this hookcheck")
    assert {name: ("left-out", reason) for name, reason in EXCUSED.items()}.items() <= states.items()
    assert all((state == "covered") == (not reason) for state, reason in states.values())
    code, out, _ = asked("layers", "--format", "pretty")
    assert code == 0
    assert all(name in out for name in states)


def test_the_layers_that_torch_offers_are_read_from_its_source() -> None:
    modules = {
        name
        for name, kind in vars(torch.nn).items()
        if isinstance(kind, type) and issubclass(kind, torch.nn.Module) and not name.startswith("_")
    }
    assert offered() == modules - {"DataParallel"}  # which stands in torch.nn.parallel


def test_report(record: Path) -> None:
    files = [row["file"] for row in lines("report")]
    assert files == ["reports/site/index.html", "reports/compatibility.md"]
    assert all(Path(file).is_file() for file in files)
    assert asked("report", "--records", str(record.parent), "--output", "out", "--format", "pretty") == (
        0, "out/site/index.html\nout/compatibility.md\n", "",
    )  # fmt: skip


def test_a_record_that_is_left_out_of_the_report_is_named(record: Path) -> None:
    (record.parent / "torch-1.7.1-cpu.jsonl.gz").write_bytes(record.read_bytes()[:-20])
    code, _, err = asked("report", "--records", str(record.parent), "--output", "out")
    assert code == 1
    assert err.startswith("hookcheck: left out: torch-1.7.1-cpu.jsonl.gz: the compressed file is cut short or damaged")


def test_explain_a_clause() -> None:
    (row,) = lines("explain", "GI-01")
    assert row["what"] == "clause"
    assert row["ledger"] == [entry.id for entry in load() if "GI-01" in entry.clauses]
    code, out, _ = asked("explain", "GI-01", "--format", "pretty")
    assert code == 0
    assert "grad_input[i] is the gradient" in out


@pytest.mark.parametrize("share", [20, pytest.param(1, marks=pytest.mark.slow)])
def test_explain_an_entry_of_the_ledger(share: int) -> None:
    for entry in load()[::share]:
        row = lines("explain", entry.id)[-1]
        assert (row["what"], row["why"].split(), row["torch"]) == ("ledger entry", entry.why.split(), str(entry.torch))
        assert (row["families"], row["says"]) == (list(entry.families) or ["all"], entry.says)
        assert "\n" not in row["why"]
    assert asked("explain", load()[0].id)[0] == 0


def test_explain_a_topology() -> None:
    (row,) = lines("explain", identify(SHARED)[:9])
    assert (row["what"], row["id"], row["where"]) == ("topology", identify(SHARED), "multi-node")
    code, out, _ = asked("explain", identify(SHARED)[:9], "--format", "pretty")
    assert code == 0
    assert out.endswith(row["script"])


def test_validate(record: Path, folder: Path) -> None:
    broken, empty = folder / "broken.jsonl", folder / "empty.jsonl"
    broken.write_bytes(record.read_bytes()[:-30])
    empty.touch()
    assert asked("validate", str(record), "--format", "pretty") == (0, f"{record}: valid\n", "")
    code, out, _ = asked("validate", str(record), str(broken), str(empty), "missing.jsonl", "--format", "pretty")
    assert code == 1
    assert [line.split(":")[0] for line in out.splitlines()][1:] == [
        "TruncatedRecord", "EmptyRecord", "UnreadableRecord",
    ]  # fmt: skip
    rows = lines("validate", str(record), str(empty), code=1)
    assert [(row["valid"], row["error"]) for row in rows] == [(True, None), (False, "EmptyRecord")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "No such command 'nothing'"),
        (["list", "--nothing"], "--nothing"),
        (["list", "--format", "xml"], "'xml' is not one of"),
        (["explain", "XX-99"], "'XX-99' is no clause, no entry of the ledger and no other name that is known"),
        (["explain", "full_bakward"], "did you mean full_backward"),
        (["explain", "GI-99"], "did you mean GI-02 or GI-01?"),
        (["list", "--kind", "sideward"], "unknown hook kind 'sideward'; choose from backward"),
        (["list", "--chapter", "forward-hook"], "unknown chapter 'forward-hook'; did you mean forward-hooks"),
        (["summary", "2.6.0"], "'2.6.0' is no file, and no version with a record: reports/records and hookcheck"),
        (["support", "full_bakward"], "unknown hook kind or chapter 'full_bakward'; did you mean full_backward"),
        (["support"], "there is no reports/support.json; write it with `hookcheck support --write`"),
        (["support", "--write"], "there is no record in reports/records"),
        (["badge", "gone.jsonl"], "gone.jsonl: cannot be read"),
        (["completion", "tcsh"], "'tcsh' is not one of"),
        (["explain", "ffff"], "has an id that begins with 'ffff'"),
        (["report"], "there is no record in reports/records; run `pytest conformance/` first"),
        (["validate"], "Missing argument 'RECORD...'; `hookcheck validate --help` says more"),
        (["nothing"], "'nothing'; `hookcheck --help` says more"),
        (["repro", OTHERS[0], "--clause", "XX-99", "--kind", "backward"], "unknown clause 'XX-99'"),
        (["repro", OTHERS[0], "--clause", "GI-01", "--kind", "sideward"], "unknown hook kind 'sideward'; choose from"),
        (["repro", OTHERS[0], "--clause", "P2-11", "--kind", "full_backward"], "clause P2-11 does not speak of"),
        (["repro", *OTHERS, "--device", "tpu"], "'tpu' is not one of 'cpu', 'cuda'"),
        (["repro", "ffff", *OTHERS[1:]], "has an id that begins with 'ffff'"),
        (["repro", "gone.json", *OTHERS[1:]], "'gone.json' is neither a file nor"),
        (["run", "--device", "tpu"], "'tpu' is not one of 'cpu', 'cuda', 'all'"),
    ],
)
def test_wrong_input_is_one_line(arguments: list[str], words: str) -> None:
    code, out, err = asked(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("hookcheck: error: ")
    assert err.count("\n") == 1
    assert words in err


def test_of_many_names_the_first_are_told() -> None:
    _, _, err = asked("support", "foo")
    assert len(err) < 800
    assert re.search(r"choose from backward, .* or \d+ more\n$", err)


def test_an_ambiguous_beginning_is_one_line(folder: Path) -> None:
    write(folder / "conformance" / "corpus", "single-node", [replace(LINEAR, seed=n) for n in range(1, 40)])
    code, _, err = asked("repro", identify(LINEAR)[:1], *OTHERS[1:])
    assert code == 2
    assert "ids, among them" in err
    assert err.count("\n") == 1


def test_an_output_that_cannot_be_written_is_one_line(record: Path, folder: Path) -> None:
    (folder / "file").touch()
    code, _, err = asked("report", "--output", "file/below")
    assert code == 2
    assert err.startswith("hookcheck: error: cannot write into file/below")
    assert err.count("\n") == 1


def test_a_missing_corpus_is_one_line(folder: Path) -> None:
    (folder / "conformance" / "corpus" / "multi-node.jsonl").unlink()
    code, _, err = asked("families")
    assert code == 2
    assert "restore it from the repository" in err
    assert err.count("\n") == 1


def test_ctrl_c_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hookcheck.cli.list.show", interrupted)
    code, _, err = asked("list")
    assert code == 130
    assert err.split() == ["hookcheck:", "interrupted"]


def test_a_fault_of_hookcheck_is_not_softened(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("hookcheck.cli.list.show", faulty)
    with pytest.raises(ZeroDivisionError):
        asked("list")


def test_version() -> None:
    assert asked("--version") == (0, f"hookcheck {__version__}\n", "")


def test_help_documents_exit_codes_and_every_field() -> None:
    code, out, _ = asked("--help")
    assert code == 0
    assert all(f"{number}  " in out for number in (0, 1, 2, 3, 130))
    assert isinstance(cli.main, click.Group)
    assert set(cli.main.commands) == set(SCHEMAS)
    for name, schemas in SCHEMAS.items():
        _, out, _ = asked(name, "--help")
        for schema in schemas:
            for field, meaning in schema["properties"].items():
                assert f"{field}: {meaning['description']}" in out


NO_TORCH = "import sys; sys.modules['torch'] = None"


def test_without_torch(record: Path, folder: Path) -> None:
    corpus = f"pathlib.Path({str(folder / 'conformance')!r})"
    here = f"import pathlib, hookcheck.suite as suite; suite.conformance_folder = lambda: {corpus}"
    for arguments in (
        ["list"], ["families"], ["layers"], ["coverage"], ["explain", "GI-01"], ["validate", str(record)], ["report"],
    ):  # fmt: skip
        done = in_process(*arguments, code=f"{NO_TORCH}\n{here}")
        assert (done.returncode, done.stderr) == (0, ""), arguments
    done = in_process("run", code=NO_TORCH)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "hookcheck: error: torch is not installed: pip install torch (any release from 1.7)\n"


def test_with_an_unusable_torch(folder: Path) -> None:
    (folder / "torch.py").write_text("raise OSError('libtorch.so: cannot open')", encoding="utf-8")
    done = in_process("run", code=f"import sys; sys.path.insert(0, {str(folder)!r})")
    assert done.returncode == 3
    assert done.stderr == "hookcheck: error: torch cannot be imported: libtorch.so: cannot open\n"
    (folder / "torch.py").unlink()
    done = in_process("run", code="import torch; torch.__version__ = '1.6.0'")
    assert done.returncode == 3
    assert done.stderr.startswith("hookcheck: error: torch 1.6.0 is too old")


def test_nothing_imports_torch_before_it_is_needed() -> None:
    done = in_process("list", code="import sys, atexit; atexit.register(lambda: print('torch' in sys.modules))")
    assert done.stdout.splitlines()[-1] == "False"


SELECTION = ("--family", "single-node", "--kind", "backward", "--clause", "BW-07", "-n0", "--hypothesis-profile=smoke")


@pytest.mark.slow
def test_run_from_anywhere(folder: Path) -> None:
    done = in_process("run", "-q", *SELECTION, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((folder / "reports" / "partial").glob("*.jsonl.gz"))) == 1
    assert not (folder / ".pytest_cache").exists()


@pytest.mark.slow
def test_run_for_programs(folder: Path) -> None:
    done = in_process("run", "--format", "json", "--reports", "here", *SELECTION, cwd=folder)
    (row,) = map(json.loads, done.stdout.splitlines())
    Draft202012Validator(SCHEMAS["run"][0]).validate(row)
    assert row["complete"]
    assert row["record"].startswith("here/partial/")
    assert SELECTION[1] in done.stderr  # the family, in the summary


def test_run_ends_with_the_exit_code_of_pytest(folder: Path) -> None:
    done = in_process("run", "--family", "nothing", cwd=folder)
    assert done.returncode == int(pytest.ExitCode.USAGE_ERROR)
    assert "unknown family 'nothing'" in done.stderr


def test_validate_tells_records_of_different_corpora(record: Path, tmp_path: Path) -> None:
    known = read(record)
    plan = known.header.plan
    corpus = {family: replace(file, digest="abc") for family, file in plan.corpus.items()}
    header = replace(known.header, plan=replace(plan, corpus=corpus))
    older = write_record(replace(known, header=header), tmp_path)
    code, out, _ = asked("validate", str(record), str(older), "--format", "pretty")
    assert code == 1
    assert "they ran 2 different corpora" in out.splitlines()[-1]
    assert asked("validate", str(older))[0] == 0
