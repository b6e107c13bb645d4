"""Does the support data say what records say, no more, and are the committed files those of the committed records?"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest
from tests.committed import drawn_from_committed_records

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.collector import paused
from hookcheck.contract.ledger import load
from hookcheck.record.model import Record
from hookcheck.record.reading import read, record_files
from hookcheck.report.changes import changes
from hookcheck.report.statement import period
from hookcheck.report.support import schema, support, text

from .samples import case, deviation, record, records

REPORTS = Path(__file__).parents[2] / "reports"
VALID = fastjsonschema.compile(schema())


def states(content: dict[str, Any], clause: str, kind: str) -> list[tuple[str, str, str]]:
    (row,) = [each for each in content["clauses"][clause]["support"] if each["kind"] == kind]
    return [(s["state"], s["since"], s["last"]) for s in row["statements"]]


def releases(*deviations: tuple[str, list[Any]]) -> list[Record]:
    return [record(version, [case("aaaa", "backward", each)]) for version, each in deviations]


@pytest.mark.slow
@drawn_from_committed_records
def test_the_committed_files_are_those_of_the_committed_records() -> None:
    with paused():
        all_records = [read(path) for path in record_files(REPORTS / "records")]
        content = support(all_records)
        links = {entry.id: entry.link for entry in load()}
        assert text(content) == (REPORTS / "support.json").read_text(encoding="utf-8"), "hookcheck support --write"
        assert changes(all_records, links) == (REPORTS / "changes.md").read_text(encoding="utf-8"), (
            "hookcheck support --write"
        )
    VALID(content)


def test_the_file_is_a_function_of_the_records_alone() -> None:
    forward, backward = support(records()), support(list(reversed(records())))
    assert text(forward) == text(backward)
    assert json.loads(text(forward)) == forward
    VALID(forward)


def test_every_statement_names_the_records_it_rests_on() -> None:
    content = support(records())
    assert set(content["records"]) == {"torch-1.7.1-cpu", "torch-1.13.1-cpu", "torch-2.13.0-cpu"}
    for clause in content["clauses"].values():
        for each in clause["support"]:
            named = [name for statement in each["statements"] for name in statement["records"]]
            assert named == ["torch-1.7.1-cpu", "torch-1.13.1-cpu", "torch-2.13.0-cpu"]


def test_a_lost_case_counts_for_no_clause_that_judges_none_of_the_others() -> None:
    lost = case("bbbb", "backward", outcome="crashed", reason="signal 11")
    ran = replace(case("aaaa", "backward"), judged={"BW-01": 2})
    content = support([record("2.0.1", [ran, lost])])
    assert [states(content, id, "backward")[0][0] for id in ("BW-01", "BW-02")] == ["partial", "unknown"]


def test_the_states() -> None:
    content = support(records())
    assert states(content, "BW-01", "backward") == [
        ("partial", "1.7.1", "1.7.1"),  # one of two families without a reason
        ("partial", "1.13.1", "1.13.1"),  # one of two crashed
        ("partial", "2.13.0", "2.13.0"),
    ]
    assert states(content, "BW-01", "full_backward") == [
        ("not offered", "1.7.1", "1.7.1"), ("partial", "1.13.1", "1.13.1"), ("holds", "2.13.0", "2.13.0"),
    ]  # fmt: skip
    assert states(content, "BW-02", "full_backward")[1][0] == "changed"  # a pin
    assert "BW-03" not in content["clauses"]  # which is unspecified
    assert states(support(releases(("2.0.1", [deviation()]))), "BW-01", "backward") == [("partial", "2.0.1", "2.0.1")]
    both = [deviation(), replace(deviation(), subject="net.fc#2")]
    assert states(support(releases(("2.0.1", both))), "BW-01", "backward") == [("fails", "2.0.1", "2.0.1")]
    silent = [replace(case("aaaa", "backward"), judged={})]
    assert states(support([record("2.0.1", silent)]), "BW-01", "backward") == [("unknown", "2.0.1", "2.0.1")]


def test_releases_that_come_out_alike_make_one_statement() -> None:
    known = [deviation(ledger="linear-bias")]
    content = support(
        releases(("2.0.1", []), ("2.1.2", known), ("2.2.2", known), ("2.10.0", [deviation()]), ("2.11.0", []))
    )
    assert states(content, "BW-01", "backward") == [
        ("holds", "2.0.1", "2.0.1"), ("partial", "2.1.2", "2.2.2"), ("partial", "2.10.0", "2.10.0"),
        ("holds", "2.11.0", "2.11.0"),
    ]  # fmt: skip
    statements = content["clauses"]["BW-01"]["support"][0]["statements"]
    assert [(s["otherwise_before"], s["otherwise_after"]) for s in statements] == [
        (None, "2.1.2"), ("2.0.1", "2.10.0"), ("2.2.2", "2.11.0"), ("2.10.0", None),
    ]  # fmt: skip
    assert statements[1]["note"] == "wrong values in single-node (known: linear-bias)"
    assert [period(s) for s in statements] == [
        "in 2.0.1 (otherwise in 2.1.2)",
        "from 2.1.2 to 2.2.2 (otherwise in 2.0.1 and 2.10.0)",
        "in 2.10.0 (otherwise in 2.2.2 and 2.11.0)",
        "since 2.11.0 (otherwise in 2.10.0)",
    ]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda s: s.update(note="") or s.update(state="partial"),
        lambda s: s.update(records=[]),
        lambda s: s.update(state="mostly"),
        lambda s: s.pop("since"),
        lambda s: s.update(more=1),
    ],
)
def test_the_schema_refuses_what_says_too_little(spoil: Any) -> None:
    content = support(records())
    spoil(content["clauses"]["BW-01"]["support"][1]["statements"][-1])
    with pytest.raises(fastjsonschema.JsonSchemaValueException):
        VALID(content)


def test_changes_are_told_in_sentences_the_newest_first() -> None:
    history = releases(("1.7.1", []), ("2.0.1", [deviation(ledger="linear-bias")]), ("2.13.0", []))
    lines = changes(history, {"linear-bias": "https://example.org/1"}).splitlines()
    heads = [line for line in lines if line.startswith("## ")]
    assert heads == [
        "## torch 2.13.0 on cpu, against 2.0.1", "## torch 2.0.1 on cpu, against 1.7.1", "## torch 1.7.1 on cpu",
    ]  # fmt: skip
    assert (
        "- No longer as promised: BW-01, “Values are those of the inputs.” Now: wrong values: 0.0 instead of 1.0 × 2 "
        "(1 case, backward). [Why](https://example.org/1)." in lines
    )
    assert any(line.startswith("- Mended: BW-01") and "Before: wrong values: 0.0" in line for line in lines)
    assert any("Not run between them: 2.1.2, 2.2.2, " in line for line in lines)


def test_a_hostile_text_stays_text() -> None:
    hostile = replace(deviation(), observed="[x](javascript:0) <script> \x1b[31m `a` | b")
    (line,) = [
        line for line in changes(releases(("2.0.1", []), ("2.1.2", [hostile])), {}).splitlines() if "Now" in line
    ]
    assert "\\[x\\](javascript:0) \\<script\\> \N{REPLACEMENT CHARACTER}\\[31m \\`a\\` \\| b" in line
