from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from hookcheck.record.errors import InconsistentRecord, UnwritableReports
from hookcheck.record.model import record_name, tally
from hookcheck.record.reading import read
from hookcheck.record.writing import write

from .samples import CASES, record


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = write(record(), tmp_path / "records")
    assert path == tmp_path / "records" / "torch-2.13.0-cpu.jsonl.gz"
    assert read(path) == record()


def test_a_deviation_that_is_not_put_into_words_is_read_back_without_any(tmp_path: Path) -> None:
    (deviation,) = CASES[0].deviations
    untold = replace(deviation, expected="", observed="")
    silent = record((replace(CASES[0], deviations=(deviation, untold)), *CASES[1:]))
    path = write(silent, tmp_path)
    assert read(path) == silent
    assert [d.worded for d in read(path).cases[0].deviations] == [True, False]
    assert gzip.decompress(path.read_bytes()).count(b'"observed":') == 1


def test_what_was_not_judged_is_read_back(tmp_path: Path) -> None:
    counted = record((replace(CASES[0], unjudged={"BW-01": 3}), *CASES[1:]))
    assert read(write(counted, tmp_path)) == counted
    assert gzip.decompress(write(record(), tmp_path).read_bytes()).count(b"unjudged") == 0


def test_the_same_record_is_the_same_bytes_whatever_the_order_of_its_mappings(tmp_path: Path) -> None:
    header = record().header
    turned = replace(header, environment=dict(reversed(list(header.environment.items()))))
    first = write(record(), tmp_path / "one").read_bytes()
    assert first == write(replace(record(), header=turned), tmp_path / "two").read_bytes()
    assert gzip.decompress(first).endswith(b'"type":"footer"}\n')


def test_nothing_else_is_left_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "torch-2.13.0-cpu.jsonl").write_text("as records were written before they were compressed")
    path = write(record(), tmp_path)
    write(record(), tmp_path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_record_that_would_be_refused_is_not_written(tmp_path: Path) -> None:
    lost = replace(record(), cases=CASES[1:])
    with pytest.raises(InconsistentRecord):
        write(lost, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_named_with_what_to_do(tmp_path: Path) -> None:
    taken = tmp_path / "reports"
    taken.write_text("a file")
    with pytest.raises(UnwritableReports, match=r"reports .*; choose another folder, or mend its permissions$"):
        write(record(), taken)


def test_a_text_that_utf8_cannot_say_survives(tmp_path: Path) -> None:
    odd = replace(CASES[2], reason="half a pair: \ud800")
    spoiled = record((*CASES[:2], odd, *CASES[3:]))
    assert read(write(spoiled, tmp_path)).cases[2].reason == "half a pair: \ud800"


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("2.13.0+cpu", "torch-2.13.0-cuda.jsonl.gz"),
        ("2.13.0+cu126", "torch-2.13.0-cuda.jsonl.gz"),
        ("2.5.1+rocm6.2", "torch-2.5.1-cuda.jsonl.gz"),
        ("2.13.0+git123", "torch-2.13.0+git123-cuda.jsonl.gz"),
        ("2.13.0+custom", "torch-2.13.0+custom-cuda.jsonl.gz"),
        ("1.8.0", "torch-1.8.0-cuda.jsonl.gz"),
        ("2.16.0.dev20261101+cu126", "torch-2.16.0.dev20261101-cuda.jsonl.gz"),
    ],
)
def test_the_name_is_that_of_the_release_and_the_device(version: str, name: str) -> None:
    assert record_name(version, "cuda") == name


def test_a_label_keeps_a_record_beside_others(tmp_path: Path) -> None:
    plain, labelled = record(), replace(record(), header=replace(record().header, label="patched"))
    paths = [write(each, tmp_path) for each in (plain, labelled)]
    assert [path.name for path in paths] == ["torch-2.13.0-cpu.jsonl.gz", "torch-2.13.0-patched-cpu.jsonl.gz"]
    assert [read(path) for path in paths] == [plain, labelled]


def test_every_case_is_counted_once() -> None:
    counts = tally(CASES)
    assert counts == {"planned": 5, "ran": 3, "not offered": 1, "not run": 1, "crashed": 0, "timed out": 0}
