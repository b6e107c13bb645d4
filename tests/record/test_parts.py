from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from hookcheck.record.errors import UnwritableReports, WrongSchema
from hookcheck.record.lines import case_line
from hookcheck.record.parts import Part, merge, read_parts

from .samples import CASES, record

PLAN = record().header.plan


def test_cases_of_all_workers_come_back_in_the_order_of_the_plan(tmp_path: Path) -> None:
    shuffled = list(CASES)
    random.Random(0).shuffle(shuffled)
    for number, case in enumerate(shuffled):
        Part(tmp_path / ".partial-1" / f"gw{number % 2}.jsonl").append(case_line(case))
    assert merge(read_parts(tmp_path / ".partial-1"), PLAN) == CASES


def test_a_part_cut_in_the_middle_loses_nothing_before(tmp_path: Path) -> None:
    part = Part(tmp_path / "gw0.jsonl")
    for case in CASES:
        part.append(case_line(case))
    whole = part.path.read_bytes()
    last = len(whole.splitlines(keepends=True)[-1])
    for missing in range(1, last + 1):
        part.path.write_bytes(whole[:-missing])
        assert merge(read_parts(tmp_path), PLAN) == CASES[:-1]


def test_a_broken_line_before_the_last_is_no_cut(tmp_path: Path) -> None:
    (tmp_path / "gw0.jsonl").write_text('{"type":"ca\n{}\n')
    with pytest.raises(WrongSchema, match="line 1"):
        read_parts(tmp_path)


def test_a_folder_without_parts_has_no_cases(tmp_path: Path) -> None:
    assert read_parts(tmp_path) == []


def test_a_case_that_is_there_twice_is_kept_once() -> None:
    assert merge([case_line(CASES[0])] * 2, PLAN) == (CASES[0],)


@pytest.mark.parametrize("turn", [1, -1])
def test_of_two_results_of_a_case_the_weightier_is_kept(turn: int) -> None:
    ran = CASES[0]
    crashed = replace(ran, outcome="crashed", reason="signal 11", judged={}, deviations=())
    placeholder = replace(ran, outcome="not run", reason="interrupted", judged={}, deviations=())
    sound = replace(ran, deviations=())
    for lines, weightier in (([ran, crashed], crashed), ([placeholder, ran], ran), ([sound, ran], ran)):
        assert merge(map(case_line, lines[::turn]), PLAN) == (weightier,)


def test_a_part_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("a file")
    with pytest.raises(UnwritableReports, match="choose another folder, or mend its permissions"):
        Part(tmp_path / "reports" / "gw0.jsonl").append({})


def test_a_case_that_was_not_run_keeps_its_own_reason() -> None:
    with_reason = replace(CASES[2], reason="it is about cuda")
    assert merge(map(case_line, (CASES[2], with_reason)), PLAN) == (with_reason,)
