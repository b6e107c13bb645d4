from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

from hookcheck.contract.site import CLOSE, VALUE, Relation, Site, SiteKind
from hookcheck.contract.verdict import GAPS, OUTCOMES
from hookcheck.errors import HookcheckError
from hookcheck.record.errors import (
    DuplicateCase,
    EmptyRecord,
    InconsistentRecord,
    RecordError,
    TruncatedRecord,
    UnreadableRecord,
    WrongSchema,
)
from hookcheck.record.model import tally
from hookcheck.record.reading import read, schema
from hookcheck.record.writing import write

from .samples import CASES, record

Lines = list[dict[str, Any]]
HEADER, FIRST, COUNTEREXAMPLE, FOOTER = 0, 1, -2, -1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A record as text, which is easier to spoil than the compressed file that is written."""
    text = tmp_path / "torch-2.13.0-cpu.jsonl"
    text.write_bytes(gzip.decompress(write(record(), tmp_path / "compressed").read_bytes()))
    return text


def spoil(path: Path, change: Callable[[Lines], object]) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def recount(lines: Lines, **changes: int) -> None:
    for name, change in changes.items():
        lines[FOOTER]["counts"][name.replace("_", " ")] += change


def test_both_forms_say_the_same(path: Path) -> None:
    assert read(path) == read(path.parent / "compressed" / f"{path.name}.gz")


def test_every_place_to_cut_a_compressed_record_is_noticed(path: Path) -> None:
    compressed = path.parent / "compressed" / f"{path.name}.gz"
    whole = compressed.read_bytes()
    for end in range(len(whole)):
        compressed.write_bytes(whole[:end])
        with pytest.raises(RecordError):
            read(compressed)


def test_a_damaged_byte_in_a_compressed_record_is_noticed(path: Path) -> None:
    compressed = path.parent / "compressed" / f"{path.name}.gz"
    whole = compressed.read_bytes()
    middle = len(whole) // 2
    compressed.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    with pytest.raises(TruncatedRecord, match="cut short or damaged; run"):
        read(compressed)


def test_an_empty_file(path: Path) -> None:
    path.write_bytes(b"")
    with pytest.raises(EmptyRecord, match="is empty; run"):
        read(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnreadableRecord, match="cannot be read"):
        read(tmp_path / "torch-9.9.9-cpu.jsonl")


def test_a_last_line_cut_in_the_middle(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(TruncatedRecord, match=r"line 8: the last line was cut"):
        read(path)


def test_no_footer(path: Path) -> None:
    spoil(path, lambda lines: lines.pop())
    with pytest.raises(TruncatedRecord, match="no footer"):
        read(path)


def test_every_place_to_cut_is_noticed(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises((TruncatedRecord, EmptyRecord)):
            read(path)


def test_a_lost_line_break_at_the_end_loses_nothing(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])
    assert read(path) == record()


@pytest.mark.parametrize("line", ["{not json}", "", "\x00", "[1]", '{"type":"remark"}', '"text"', "{}"])
def test_a_line_that_is_none(path: Path, line: str) -> None:
    lines = path.read_text().splitlines()
    lines[1] = line
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(WrongSchema, match="line 2"):
        read(path)


def test_bytes_that_are_no_text(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"single-node", b"single\xffnode"))
    with pytest.raises(WrongSchema, match="line 1: the line is not JSON"):
        read(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[HEADER].pop("device"),
        lambda lines: lines[HEADER].update(remark="x"),
        lambda lines: lines[HEADER].update(started="yesterday"),
        lambda lines: lines[HEADER]["plan"]["clauses"][0].update({"class": "hope"}),
        lambda lines: lines[FIRST].update(outcome="passed"),
        lambda lines: lines[FIRST].update(origin="memory"),
        lambda lines: lines[FIRST]["judged"].update({"BW-01": "two"}),
        lambda lines: lines[FIRST]["deviations"][0].update(gap="strange"),
        lambda lines: lines[FIRST]["deviations"][0].update(relation="strange"),
        lambda lines: lines[FIRST]["deviations"][0]["site"].update(kind="strange"),
        lambda lines: lines[COUNTEREXAMPLE].update(content="text"),
        lambda lines: lines[FOOTER]["counts"].pop("not run"),
    ],
)
def test_a_line_that_breaks_the_schema(path: Path, change: Callable[[Lines], object]) -> None:
    spoil(path, change)
    with pytest.raises(WrongSchema, match=r"line \d: (header|case|counterexample|footer)\b.* must "):
        read(path)


def test_an_unknown_schema_names_the_hookcheck_to_read_it_with(path: Path) -> None:
    spoil(path, lambda lines: lines[HEADER].update(schema=9, hookcheck="9.0"))
    with pytest.raises(WrongSchema, match=r"schema 9 is unknown.*reads schemas 2 and 3.*wrote it \(9\.0\)"):
        read(path)


def test_a_record_of_the_schema_before_is_read(path: Path) -> None:
    def older(lines: Lines) -> None:
        lines[HEADER].update(schema=2)
        for name in ("relation", "site"):
            del lines[FIRST]["deviations"][0][name]

    (now,) = read(path).cases[0].deviations
    assert (now.relation, now.site) == (CLOSE, Site(VALUE, "grad_input[0]"))
    spoil(path, older)
    (was,) = read(path).cases[0].deviations
    assert was == replace(now, relation=None, site=None)


def test_a_case_twice(path: Path) -> None:
    def twice(lines: Lines) -> None:
        lines.insert(2, lines[FIRST])
        recount(lines, planned=1, ran=1)
        lines[HEADER]["plan"]["cases"] += 1

    spoil(path, twice)
    with pytest.raises(DuplicateCase, match="case single-node / aaaa / backward / corpus is there twice"):
        read(path)


def vanish(lines: Lines) -> None:
    """A case that vanishes with its count in the footer."""
    del lines[3]
    recount(lines, planned=-1, **{"not run": -1})


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda lines: recount(lines, ran=1), "the footer counts 4 ran, the cases 3"),
        (lambda lines: recount(lines, planned=-1), "the footer counts 4 planned, the cases 5"),
        (lambda lines: lines.pop(3), "the footer counts 5 planned, the cases 4"),
        (vanish, "4 cases of the corpus were planned, 3 ran or are accounted for"),
        (lambda lines: lines[HEADER]["plan"].update(cases=9), "9 cases of the corpus were planned, 4 ran"),
        (lambda lines: lines[HEADER]["plan"]["families"].pop(), "the plan has no family 'residual'"),
        (lambda lines: lines[HEADER]["plan"]["kinds"].pop(), "the plan has no hook kind 'full_backward'"),
        (lambda lines: lines[HEADER]["plan"]["clauses"].pop(), "the plan has no clause 'BW-01'"),
        (lambda lines: lines[FIRST]["deviations"][0].update(clause="BW-9"), "the plan has no clause 'BW-9'"),
        (lambda lines: lines[FIRST].update(reason="why not"), "a case with outcome 'ran' has reason 'why not'"),
        (lambda lines: lines[3].update(reason=""), "a case with outcome 'not run' has reason ''"),
        (lambda lines: lines[HEADER]["torch"].update(version="new"), "'new' is no version of torch"),
        (lambda lines: lines[FOOTER].update(complete=True), "complete is True, but stopped is"),
        (lambda lines: lines[FOOTER].update(stopped=""), "complete is False, but stopped is ''"),
        (lambda lines: lines.append(lines[FIRST]), "there is a line after the footer"),
        (lambda lines: lines.append(lines[FOOTER]), "there is a line after the footer"),
        (lambda lines: lines.insert(1, lines[HEADER]), "the header is the first line"),
        (lambda lines: lines.pop(0), "the header is the first line"),
        (lambda lines: lines.insert(1, lines[COUNTEREXAMPLE]), "a case stands after the first counterexample"),
        (lambda lines: lines.insert(-1, lines[COUNTEREXAMPLE]), "the counterexample aaaa is there twice"),
        (lambda lines: lines[COUNTEREXAMPLE].update(topology="dddd"), "no case of the topology dddd deviates"),
        (lambda lines: lines.pop(-2), "BW-01 / single-node / backward has no counterexample"),
        (
            lambda lines: [lines[FIRST]["deviations"][0].pop(side) for side in ("expected", "observed")],
            "BW-01 / single-node / backward has no counterexample",
        ),
    ],
)
def test_lines_that_contradict_each_other(path: Path, change: Callable[[Lines], object], cause: str) -> None:
    spoil(path, change)
    with pytest.raises(InconsistentRecord, match=re.escape(cause)):
        read(path)


def test_every_error_is_one_line_that_says_where_and_what_to_do(path: Path) -> None:
    spoil(path, lambda lines: recount(lines, ran=1))
    with pytest.raises(HookcheckError) as caught:
        read(path)
    assert isinstance(caught.value, RecordError)
    assert str(caught.value) == (
        f"{path}: the footer counts 4 ran, the cases 3; "
        "run `pytest conformance/` on that torch again, or delete the file"
    )


def test_the_schema_is_sound_and_closed() -> None:
    Draft202012Validator.check_schema(schema())
    described = schema()["$defs"]
    assert all(definition["additionalProperties"] is False for definition in described.values())
    assert described["case"]["properties"]["outcome"]["enum"] == list(OUTCOMES)
    deviation = described["case"]["properties"]["deviations"]["items"]["properties"]
    assert deviation["gap"]["enum"] == list(GAPS)
    assert deviation["relation"]["enum"] == list(get_args(Relation))
    assert deviation["site"]["properties"]["kind"]["enum"] == list(get_args(SiteKind))
    assert deviation["site"]["additionalProperties"] is False


def test_the_published_schema_takes_every_line(path: Path) -> None:
    validator = Draft202012Validator(schema())
    for line in path.read_text().splitlines():
        validator.validate(json.loads(line))


def test_a_long_record_is_read_in_seconds(tmp_path: Path) -> None:
    cases = tuple(replace(CASES[0], topology=f"{number:06}") for number in range(20_000))
    counterexamples = (replace(record().counterexamples[0], topology="000000"),)
    long = replace(record(cases), counterexamples=counterexamples)
    path = write(long, tmp_path)
    started = time.perf_counter()
    assert read(path).footer.counts == tally(cases)
    # Measured: 2 s; the bound only catches what no longer scales.
    assert time.perf_counter() - started < 20
