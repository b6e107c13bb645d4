"""Does the end of a run say what is new against another record, and does it read that before it is replaced?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from test_cli_diff import WARNED, WRONG, case, of

from hookcheck.errors import HookcheckError
from hookcheck.record.writing import write
from hookcheck.report.summary import lines_of
from hookcheck.run.baseline import against, baselines
from hookcheck.run.ending import compared


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    for version in ("2.6.0", "2.9.0", "2.10.0"):
        write(of(version, case("aaaa"), case("bbbb")), tmp_path / "records")
    return tmp_path


def versions(named: list[str], reports: Path, version: str, device: str = "cpu") -> list[str]:
    return [before.header.torch.version for _, before in baselines(named, reports, version, device)]


def test_the_last_of_this_torch_and_that_of_the_release_before(reports: Path) -> None:
    assert versions([], reports, "2.10.0+cu130") == ["2.10.0+cpu", "2.9.0+cpu"]
    assert versions([], reports, "2.9.1") == ["2.9.0+cpu"]
    assert versions([], reports, "2.16.0a0+git123") == ["2.10.0+cpu"]
    assert versions([], reports, "1.7.1") == []
    assert versions([], reports, "2.10.0", "cuda") == []


def test_those_that_are_named(reports: Path) -> None:
    path = reports / "records" / "torch-2.9.0-cpu.jsonl.gz"
    assert versions(["2.6.0", str(path)], reports, "2.10.0") == ["2.6.0+cpu", "2.9.0+cpu"]
    with pytest.raises(HookcheckError, match=r"--baseline '2\.7\.0' is no file"):
        baselines(["2.7.0"], reports, "2.10.0", "cpu")


def test_what_is_new_is_told() -> None:
    before = of("2.9.0", case("aaaa"), case("bbbb", WARNED))
    old, new = Path("old"), Path("new")
    lines = lines_of(against(old, before, of("2.10.0", case("aaaa", WRONG), case("bbbb")), new), 200)
    assert lines == [
        "against torch 2.9.0+cpu (2026-11-21T04:40:00Z): 1 cause worse, 1 mended",
        "newly deviating: BW-01, wrong values, in 1 case; for one see: hookcheck explain aaaa",
    ]
    (same,) = against(old, before, before, new)
    assert same.endswith(": nothing worse, 0 mended")
    less = of("2.10.0", case("bbbb", WARNED))
    assert any("disappeared" in line for line in against(old, before, less, new))
    worse = of("2.10.0", case("aaaa", WRONG), case("bbbb", WRONG, WARNED))
    first, _ = lines_of(against(old, of("2.9.0", case("aaaa"), case("bbbb")), worse, new), 200)
    assert first.endswith(": 2 causes worse, 0 mended; all: hookcheck diff old new")
    (replaced,) = against(old, of("2.9.0", case("aaaa"), case("bbbb")), worse, old, causes=0)
    assert replaced.endswith(": 2 causes worse, 0 mended")  # the file holds the new record now


def test_where_much_is_new_no_comparison_tells_of_it_again() -> None:
    before, new = of("2.9.0", case("aaaa")), Path("a folder/new")
    gaps = ("wrong values", "wrong shape", "not fired", "raised")
    many = of("2.10.0", case("aaaa", *(replace(WARNED, gap=gap) for gap in gaps)))
    assert compared([(Path("old"), before)], many, new, 100) == [
        "against torch 2.9.0+cpu (2026-11-21T04:40:00Z): 4 causes worse, 0 mended; all:",
        "  hookcheck diff old 'a folder/new'",
    ]
    assert compared([(Path("old"), before)], of("2.10.0", case("aaaa", WARNED)), new, 60)[-2:] == [
        "newly deviating: BW-01, new warning, in 1 case; for one see:",
        "  hookcheck explain aaaa",
    ]
