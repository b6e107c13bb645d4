from __future__ import annotations

import io

import pytest
from rich.console import Console

from hookcheck.record.model import Record
from hookcheck.report.terminal import print_summary

from .samples import case, record, records

GOLDEN = """\
Backward hooks of a module
(legacy, full)

           single-
  clause   node      residual
 ─────────────────────────────
  BW-01    ~1 ✗1     ! –
  BW-02    ✓  ≠1     ! –

! 2 crashed: a case ended the process; nothing is said about the others
✗ 1 deviates: deviates from a promise, and no ledger entry explains it
≠ 1 changed: undocumented behaviour changed, and no ledger entry explains it
~ 1 known: deviates, as an entry of the ledger says
✓ 1 conforms: everything that was judged is as expected
– 2 not run: not run, or nothing to judge; this is no pass
4 cases planned: 2 ran, 0 not offered, 1 not run, 1 crashed, 0 timed out
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
    assert "| BW-01  | !" in text


@pytest.mark.parametrize("width", [40, 80, 200])
def test_many_families_fit_any_width(width: int) -> None:
    families = [f"{feature}-grad-evaluation" for feature in ("no", "multi", "shared", "intermediate", "residual", "x")]
    wide = record("2.0.1", [case("aaaa", kind, family=f) for f in families for kind in ("backward", "full_backward")])
    tables = printed(wide, width=width).split("\n✓ 12")[0]
    assert max(map(len, tables.splitlines())) <= width
    assert tables.count("evaluation") == len(families)
    assert "…" not in tables


def test_a_text_with_brackets_is_no_markup() -> None:
    assert "[red]boo[/red]" in printed(
        record("2.0.1", [case("a", "backward", outcome="not run", reason="[red]boo[/red]")])
    )
