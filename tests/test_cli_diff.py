"""Does ``hookcheck diff`` say in exit code, words and JSON what changed, and refuse what cannot be compared?"""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest
from record.samples import record
from test_cli import asked, in_process, lines

from hookcheck.contract.site import CLOSE, VALUE, Site
from hookcheck.contract.verdict import COSTS, CaseResult, Deviation
from hookcheck.record.model import Footer, Record, Torch, tally
from hookcheck.record.writing import write

AT = Site(VALUE, "grad_input")
WRONG = Deviation("BW-01", "net#1", "wrong values", "1.0 | 2", "*0.0*\x1b[31m", "linear-bias", CLOSE, AT)
WARNED = Deviation("BW-01", "net#1", "new warning", "no warning", "UserWarning: so")


def case(topology: str, *deviations: Deviation) -> CaseResult:
    return CaseResult("single-node", topology, "backward", "corpus", "ran", "", {"BW-01": 2}, deviations)


def of(version: str, *cases: CaseResult) -> Record:
    base = record(cases)
    footer = Footer("2026-11-21T04:41:00Z", True, "", tally(cases), 0)
    header = replace(base.header, torch=Torch(f"{version}+cpu", "0123abc", None))
    shown = tuple(replace(base.counterexamples[0], topology=case.topology) for case in cases if case.deviations)
    return replace(base, header=header, counterexamples=shown, footer=footer)


@pytest.fixture(autouse=True)
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records of three releases: the second is worse than the first, and the third mends one of two faults."""
    folder = tmp_path / "reports" / "records"
    write(of("2.9.0", case("aaaa"), case("bbbb")), folder)
    write(of("2.10.0", case("aaaa", WRONG), case("bbbb", WARNED)), folder)
    write(of("2.11.0", case("aaaa"), case("bbbb", WARNED)), folder)
    monkeypatch.setattr("hookcheck.suite.published_reports", lambda: tmp_path / "published")
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.mark.parametrize(
    ("arguments", "code", "verdict", "gaps"),
    [
        (["2.9.0", "2.9.0"], 0, "not worse", []),
        (["2.9.0", "2.10.0"], 1, "worse", ["wrong values", "new warning"]),
        (["2.10.0", "2.11.0"], 0, "not worse", ["wrong values"]),
        (["2.9.0", "2.11.0+cpu", "--only", "silent"], 0, "not worse", []),
        (["2.9.0", "2.11.0", "--only", "silent,warning"], 1, "worse", ["new warning"]),
        (["2.9.0", "reports/records/torch-2.11.0-cpu.jsonl.gz", "--kinds", "backward"], 1, "worse", ["new warning"]),
    ],
)
def test_the_exit_code_says_what_the_rows_say(arguments: list[str], code: int, verdict: str, gaps: list[str]) -> None:
    first, *others = lines("diff", *arguments, code=code)
    assert (first["what"], first["verdict"], first["compared"]) == ("comparison", verdict, 2)
    assert [row["gap"] for row in others] == gaps
    known = {"wrong values": ("close", "value grad_input")}
    assert all((row["relation"], row["site"]) == known.get(row["gap"], ("", "")) for row in others)
    assert all(row["cost"] == COSTS[row["gap"]] for row in others)


def test_what_the_later_run_leaves_out_cannot_be_told(records: Path) -> None:
    later = of("2.12.0", replace(case("aaaa"), family="residual"))
    plan = replace(later.header.plan, families=("residual",), corpus={"residual": later.header.plan.corpus["residual"]})
    path = write(replace(later, header=replace(later.header, plan=plan)), records / "partial")
    first, left_out, _ = lines("diff", "2.9.0", str(path), code=2)
    assert (first["verdict"], first["compared"]) == ("cannot tell", 0)
    assert (left_out["why"], left_out["cases"]) == ("the later run leaves out the family", 2)


def test_words_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    code, out, err = asked("diff", "2.9.0", "2.10.0", "--format", "pretty")
    assert (code, err) == (1, "")
    assert out == (
        "torch 2.9.0+cpu → 2.10.0+cpu: worse. 2 cases ran in both; by cause: 2 worse, 0 mended, 0 other.\n"
        "\n"
        "silent\n"
        "  ! newly deviating (1 case): wrong values; BW-01: It holds.\n"
        "      expected: 1.0 | 2\n"
        "      before: as expected\n"
        "      after: *0.0*\N{REPLACEMENT CHARACTER}[31m\n"
        "      known: hookcheck explain linear-bias\n"
        "      example: hookcheck repro aaaa --clause BW-01 --kind backward\n"
        "\n"
        "warning\n"
        "  ! newly deviating (1 case): new warning; BW-01: It holds.\n"
        "      expected: no warning\n"
        "      before: as expected\n"
        "      after: UserWarning: so\n"
        "      example: hookcheck repro bbbb --clause BW-01 --kind backward\n"
        "\n"
        "! is worse\n"
    )


def test_markdown() -> None:
    code, out, _ = asked("diff", "2.9.0", "2.10.0", "--only", "silent", "--format", "markdown")
    assert code == 1
    heading, _, *table = out.splitlines()
    assert heading.startswith("**torch 2.9.0+cpu → 2.10.0+cpu: worse. 2 cases ran in both")
    assert table == [
        "| | cost | what | expected | before | after | example |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| worse | silent | newly deviating (1 case): wrong values; BW-01: It holds. | 1.0 \\| 2 | as expected "
        "| \\*0.0\\*\N{REPLACEMENT CHARACTER}\\[31m | hookcheck repro aaaa --clause BW-01 --kind backward |",
    ]


def test_what_cannot_be_compared_is_one_line(records: Path) -> None:
    whole = gzip.decompress((records / "torch-2.9.0-cpu.jsonl.gz").read_bytes()).decode("utf-8")
    for name, text in {
        "truncated": whole[:-20],
        "other": whole.replace('"schema":3', '"schema":99', 1),
        "none": "not a record\n",
    }.items():
        (records / f"{name}.jsonl").write_text(text, encoding="utf-8")
    latest = of("2.12.0", case("aaaa"))
    partial = write(replace(latest, footer=replace(latest.footer, complete=False, stopped="interrupted")), records)
    write(replace(latest, header=replace(latest.header, device="cuda")), records)
    for arguments, message in {
        ("2.9.0", "2.1"): "a record: reports/records and hookcheck itself have 2.9.0, 2.10.0, 2.11.0, 2.12.0; run",
        (
            "2.12.0",
            "2.9.0",
        ): "torch 2.12.0 has several records: name the file, reports/records/torch-2.12.0-cpu.jsonl.gz",
        ("2.9.0", "gone.jsonl"): "gone.jsonl: cannot be read",
        ("2.9.0", str(records / "truncated.jsonl")): "cut in the middle",
        ("2.9.0", str(records / "other.jsonl")): "schema 99 is unknown",
        ("2.9.0", str(records / "none.jsonl")): "the line is not JSON",
        ("2.9.0", str(partial)): "of a run that was cut short (interrupted)",
        ("2.9.0", "2.10.0", "--kinds", "sideways"): "unknown hook kind or chapter 'sideways'; choose from ",
        ("2.9.0", "2.10.0", "--only", "loud"): "'loud' is none of silent, not called",
        ("2.9.0", "2.10.0", "--reports", "nowhere"): "hookcheck itself have none; run",
    }.items():
        code, out, err = asked("diff", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), arguments
        assert err.startswith("hookcheck: error: ")
        assert message in err


def test_torch_is_not_needed(records: Path) -> None:
    done = in_process("diff", "2.9.0", "2.11.0", code="import sys; sys.modules['torch'] = None", cwd=records.parents[1])
    assert (done.returncode, done.stderr) == (1, "")
