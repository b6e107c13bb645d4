from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from hookcheck.record.model import PlannedClause, Record
from hookcheck.report.terminal import REASONS, print_summary

from .samples import CLAUSES, case, deviation, record, records

GOLDEN = """\
Backward hooks of a module (legacy, full)
            BW BW
family      01 02
─────────────────
single-node ~✗ ✓≠
residual    !– !–

! 2 crashed: a case ended the process; nothing is said about the others
✗ 1 deviates: deviates from a promise, and no ledger entry explains it
≠ 1 changed: undocumented behaviour changed, and no ledger entry explains it
~ 1 known: deviates, as an entry of the ledger says
✓ 1 conforms: everything that was judged is as expected
– 2 not run: not run, or nothing to judge; this is no pass
4 cases: 2 ran, 0 not offered, 1 not run, 1 crashed, 0 timed out
0 more topologies explored
the run was cut short: interrupted by the user
crashed with backward: signal 11 (1 case; residual)
not run with full_backward: cut short (1 case; residual)
"""


def printed(shown: Record, encoding: str = "utf-8", width: int = 80) -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    print_summary(shown, Console(file=stream, width=width))
    stream.flush()
    return raw.getvalue().decode(encoding)


def test_the_whole_text_in_a_pipe() -> None:
    lines = [line.rstrip() for line in printed(records()[1]).splitlines()]
    assert "\n".join(lines) + "\n" == GOLDEN


def test_without_unicode_all_is_ascii() -> None:
    spoiled = record("2.0.1", [case("aaaa", "backward", outcome="crashed", reason="é ended it")])
    text = printed(spoiled, encoding="ascii")
    assert "\\xe9 ended it" in text
    assert "single-node|! |! " in text


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_many_families_and_clauses_fit_any_width(width: int, encoding: str) -> None:
    text = printed(wide(), encoding, width)
    assert max(map(len, text.splitlines())) <= width
    names, per_table = [f"some-long-family-{number}" for number in range(10, 45)], (width - 19) // 3
    tables = -(-len(wide().header.plan.clauses) // per_table)
    assert [text.count(f"\n{name}") for name in names] == [tables] * len(names)
    assert "…" not in text


def wide() -> Record:
    """35 families, 23 clauses, and reasons that take more than one line."""
    families = [f"some-long-family-{number}" for number in range(10, 45)]
    cases = [case("aaaa", kind, family=f) for f in families for kind in ("backward", "full_backward")]
    reasons = [f"this torch lacks the layer number {n}, " + "which came later, " * 5 for n in range(20)]
    lacking = [case("bbbb", "backward", (), f, "not offered", reason) for f in families for reason in reasons]
    clauses = tuple(replace(CLAUSES[0], id=f"BW-{number}") for number in range(10, 33))
    judging = [replace(each, judged={clause.id: 1 for clause in clauses}) for each in cases]
    run_record = record("2.0.1", [*judging, *lacking])
    return replace(run_record, header=replace(run_record.header, plan=replace(run_record.header.plan, clauses=clauses)))


def test_tables_are_few_and_of_one_size() -> None:
    heads = [line.split() for line in printed(wide()).splitlines() if line.startswith("family")]
    assert [len(head) - 1 for head in heads] == [11, 12]
    assert [number for head in heads for number in head[1:]] == [str(number) for number in range(10, 33)]


def test_most_reasons_are_only_counted() -> None:
    text = printed(wide(), width=200)
    assert text.count("35 cases; 35 families)") == REASONS
    assert f"not offered for {20 - REASONS} more reasons, which the report lists ({35 * (20 - REASONS)} cases)" in text


PAIRS = ("backward", "full_backward"), ("global_backward", "global_full_backward")


@pytest.mark.parametrize(
    ("deviating", "title"),
    [((), "as above on every family"), (("residual",), "as above, but for"), (("single-node", "residual"), None)],
)
def test_a_scope_is_told_in_short_where_it_says_what_the_one_above_says(
    deviating: tuple[str, ...], title: str | None
) -> None:
    kinds = [kind for pair in PAIRS for kind in pair]
    cases = [
        replace(
            case("aaaa", kind, [deviation()] if kind == "global_backward" and family in deviating else (), family),
            judged={"BW-01": 1},
        )
        for family in ("single-node", "residual")
        for kind in kinds
    ]
    run_record = record("2.0.1", cases)
    clauses = tuple(replace(clause, kinds=tuple(kinds)) for clause in CLAUSES)
    run_record = replace(
        run_record, header=replace(run_record.header, plan=replace(run_record.header.plan, clauses=clauses))
    )
    _, _, below = printed(run_record).partition("Global backward hooks (legacy, full)")
    assert below.split("\n")[0] == (f": {title}" if title else "")
    shown = {family: re.search(f"^{family} +(\\S+)$", below, re.M) for family in ("single-node", "residual")}
    assert {family: match[1] for family, match in shown.items() if match} == dict.fromkeys(deviating, "✗✓")


def test_what_was_judged_under_fewer_hook_kinds_is_not_called_the_same() -> None:
    kinds = [kind for pair in PAIRS for kind in pair]
    cases = [case("aaaa", kind, family=family) for family in ("single-node", "residual") for kind in kinds]
    lacking = [replace(c, judged={}) if c.family == "residual" and c.kind.startswith("global") else c for c in cases]
    run_record = record("2.0.1", lacking)
    clauses = tuple(replace(clause, kinds=tuple(kinds)) for clause in CLAUSES)
    text = printed(
        replace(run_record, header=replace(run_record.header, plan=replace(run_record.header.plan, clauses=clauses)))
    )
    assert "as above" not in text


def test_a_text_with_brackets_is_no_markup() -> None:
    assert "[red]boo[/red]" in printed(
        record("2.0.1", [case("a", "backward", outcome="not run", reason="[red]boo[/red]")])
    )


def test_hook_kinds_under_which_nothing_was_judged_have_no_table() -> None:
    text = printed(record("2.0.1", [case("a", "backward", outcome="not run", reason="cut short")]))
    assert text.startswith("– 2 not run")


def test_programs_are_counted_chapter_by_chapter() -> None:
    judged = [replace(case(id, "some-chapter", family="program"), judged={id: 2}) for id in ("FW-01", "FW-02", "FW-03")]
    wrong = replace(judged[2], deviations=(deviation(clause="FW-03"),))
    run_record = record("2.0.1", [*judged[:2], wrong])
    clauses = tuple(
        PlannedClause(id, "promise", "So.", "1.8", "docs", ("some-chapter",)) for id in judged_clauses(run_record)
    )
    plan = replace(run_record.header.plan, clauses=clauses)
    run_record = replace(run_record, header=replace(run_record.header, plan=plan))
    file = io.StringIO()
    print_summary(run_record, Console(file=file, width=80))
    assert "programs      ✗  ✓  asks for attention" in file.getvalue()
    assert "some-chapter  1  2  FW-03" in file.getvalue()


def judged_clauses(run_record: Record) -> list[str]:
    """The clauses that the cases of a record judged."""
    return [id for case in run_record.cases for id in case.judged]
