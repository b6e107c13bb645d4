from __future__ import annotations

from pathlib import Path

import pytest

from hookcheck.errors import HookcheckError
from hookcheck.record.errors import UnwritableReports
from hookcheck.record.writing import write
from hookcheck.report.archive import NoRecords, read_folder
from hookcheck.report.diagram import STEP, Box, Diagram
from hookcheck.report.drawing import report
from hookcheck.report.layout import place

from .samples import case, deviation, record, records


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for each in records():
        write(each, tmp_path / "records")
    return tmp_path / "records"


def test_both_files_are_written(folder: Path, tmp_path: Path) -> None:
    index, compatibility = report(folder, tmp_path / "out")
    assert index == tmp_path / "out" / "site" / "index.html"
    assert index.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert compatibility.name == "compatibility.md"
    assert compatibility.read_text(encoding="utf-8").startswith("# ")


def test_the_same_records_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    first = [path.read_bytes() for path in report(folder, tmp_path / "one")]
    assert first == [path.read_bytes() for path in report(folder, tmp_path / "two")]


def test_a_spoiled_record_is_listed_and_the_others_are_drawn(folder: Path, tmp_path: Path) -> None:
    (folder / "torch-1.7.1-cpu.jsonl.gz").write_text("")
    for path in report(folder, tmp_path / "out"):
        text = path.read_text(encoding="utf-8")
        assert "the file is empty; run" in text
        assert "torch-1.7.1-cpu.jsonl.gz" in text
        assert "2.13.0" in text
        assert str(tmp_path) not in text


def test_spoiled_records_alone_still_make_a_report(tmp_path: Path) -> None:
    (tmp_path / "torch-1.7.1-cpu.jsonl").write_text("{")
    for path in report(tmp_path, tmp_path):
        assert "cut in the middle" in path.read_text(encoding="utf-8")


def test_a_second_record_of_one_torch_and_device_is_no_silent_choice(folder: Path) -> None:
    (folder / "copy.jsonl.gz").write_bytes((folder / "torch-1.7.1-cpu.jsonl.gz").read_bytes())
    contents = read_folder(folder)
    assert len(contents.runs) == 3
    assert [(fault.file, fault.text) for fault in contents.faults] == [
        (
            "torch-1.7.1-cpu.jsonl.gz",
            "copy.jsonl.gz records torch 1.7.1 cpu too, and is drawn; remove one of them, or run one with --label",
        )
    ]


def test_a_folder_without_records_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NoRecords, match="run `pytest conformance/` first") as caught:
        report(tmp_path, tmp_path)
    assert isinstance(caught.value, HookcheckError)


def test_a_folder_that_cannot_be_written(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(UnwritableReports):
        report(folder, tmp_path / "out")


def test_a_text_that_utf8_cannot_say_stops_nothing(tmp_path: Path) -> None:
    write(record("2.0.1", [case("aaaa", "backward", [deviation()])], stopped="half: \ud800"), tmp_path)
    for path in report(tmp_path, tmp_path):
        assert "half: \\ud800" in path.read_text(encoding="utf-8")


def test_pages_of_records_that_are_gone_are_removed(folder: Path, tmp_path: Path) -> None:
    report(folder, tmp_path)
    (folder / "torch-1.7.1-cpu.jsonl.gz").unlink()
    report(folder, tmp_path)
    assert {path.name for path in (tmp_path / "site" / "releases").iterdir()} == {"1.13.1-cpu.html", "2.13.0-cpu.html"}


def test_a_drawing_is_the_same_wherever_its_objects_lie() -> None:
    # two arrows lead over several layers, and what stands beside them is kept in sets
    boxes = [Box(name, STEP) for name in "abcdefgh"]
    arrows = [(0, 1), (1, 2), (1, 3), (1, 4), (2, 5), (3, 5), (4, 6), (0, 6), (0, 5), (5, 7), (6, 7), (0, 7)]
    others, placed = [], set()
    for _ in range(20):
        others.append([object() for _ in range(997)])
        placed.add(place(Diagram(boxes, arrows), "", ""))
    assert len(placed) == 1
