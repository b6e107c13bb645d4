"""Does ``hookcheck coverage`` tell what meets, in each of its forms, and give a reason for what does not?"""

from __future__ import annotations

from pathlib import Path

import pytest
from test_cli import asked, folder, lines, record

__all__ = ["folder", "record"]


def test_coverage() -> None:
    rows = lines("coverage")
    linear = ("family", "multi-node", "layer group", "linear")
    by_pair = {(row["axis_a"], row["word_a"], row["axis_b"], row["word_b"]): row for row in rows}
    assert len(by_pair) == len(rows)
    assert (by_pair[linear]["topologies"], by_pair[linear]["reason"]) == (2, "")
    assert all((row["topologies"] == 0) == bool(row["reason"]) for row in rows)
    code, out, err = asked("coverage", "--format", "pretty")
    assert (code, err) == (0, "")  # nothing of the bar that a terminal shows
    assert "\x1b" not in out
    assert {row["axis_b"] for row in rows if row["axis_a"] == "context" and row["required"]} == {"context", "tensor"}
    assert all(row["choice"] and not (row["topologies"] and row["may_be_missing"]) for row in rows)
    assert "grad mode × None pattern" in out
    assert "required and missing, without a reason: " in out
    reached = sum(row["topologies"] > 0 for row in rows)
    assert f"{reached:,} of {len(rows):,} pairs reached by 2 topologies" in out.splitlines()[-1]


@pytest.mark.slow
def test_coverage_by_threes() -> None:
    rows = lines("coverage", "--triples")
    assert all((row["topologies"] == 0) == bool(row["reason"]) for row in rows)
    assert {len(row["choices"]) for row in rows} == {3}
    assert max(row["topologies"] for row in rows) == 2
    code, out, err = asked("coverage", "--triples", "--format", "pretty")
    assert (code, err) == (0, "")
    assert "hook kind × context × tensor" in out
    assert "possible, but no one family is about both" in out


@pytest.mark.slow
def test_coverage_of_situations() -> None:
    rows = lines("coverage", "--situations")
    assert all((row["situations"] == 0) == bool(row["reason"]) for row in rows)
    assert {len(row["choices"]) for row in rows} == {2, 3}
    code, out, err = asked("coverage", "--situations", "--format", "pretty")
    assert (code, err) == (0, "")
    assert "site × outer × host" in out


def test_coverage_of_hosts() -> None:
    rows = lines("coverage", "--hosts")
    assert {row["host"] for row in rows if not row["reason"]} >= {"replica", "AveragedModel", "fused"}
    code, out, err = asked("coverage", "--hosts", "--format", "pretty")
    assert (code, err) == (0, "")
    assert "what is saved has other names" in out


def test_coverage_of_what_was_judged(record: Path) -> None:
    rows = lines("coverage", "--judged", str(record))
    assert all((row["cases"] == 0) == bool(row["reason"]) for row in rows)
    assert {row["choices"][0].partition(":")[0] for row in rows} == {"clause"}
    code, out, err = asked("coverage", "--judged", str(record), "--format", "pretty")
    assert (code, err) == (0, "")
    assert "clause × context × tensor" in out
    version = record.name.split("-")[1]
    assert lines("coverage", "--judged", version) == rows
    code, _, err = asked("coverage", "--judged", str(record.with_name("none.gz")))
    assert code == 2
    assert "none.gz" in err


def test_one_form_at_a_time() -> None:
    code, out, err = asked("coverage", "--triples", "--hosts")
    assert (code, out) == (2, "")
    assert "give one of them" in err
