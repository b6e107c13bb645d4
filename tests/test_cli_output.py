"""Can everybody read what the command line prints: in any encoding, and on a terminal of any width?"""

from __future__ import annotations

import pytest
from test_cli import asked, in_process, runner

import hookcheck.cli as cli


@pytest.mark.parametrize("stream", ["ascii", "iso8859-1", "utf-8"])
def test_what_a_stream_cannot_show_is_readable(stream: str) -> None:
    """As in a locale without UTF-8, where click by itself would print UTF-8 all the same."""
    code = f"import sys; sys.stdout.reconfigure(encoding={stream!r}); sys.stderr.reconfigure(encoding={stream!r})"
    done = in_process("explain", "AL-05", "--format", "pretty", code=code, encoding=stream)
    assert done.returncode == 0
    assert ("inputs=..." if stream != "utf-8" else "inputs=\N{HORIZONTAL ELLIPSIS}") in done.stdout
    done = in_process("explain", "\u03b1\u2026", code=code, encoding=stream)
    assert done.returncode == 2
    assert ("\\u03b1..." if stream != "utf-8" else "\u03b1\u2026") in done.stderr


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_table_that_is_too_wide_is_a_list_and_nothing_is_cut(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    _, out, _ = asked("layers", "--format", "pretty")
    assert max(map(len, out.splitlines())) <= columns
    assert "AdaptiveLogSoftmaxWithLoss" in out  # in one piece, to be copied
    assert ("    state: covered" in out) == (columns == 40)


@pytest.mark.parametrize(("given", "columns"), [([], 80), ([], 44), (["--help"], 80)])
def test_what_to_do_first_and_the_exit_codes_fit_a_narrow_terminal(
    given: list[str], columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = runner().invoke(cli.main, given).stdout
    assert max(map(len, text.splitlines())) <= columns
    assert ("A reader that stops reading" if given else "hookcheck upgrade --from 2.6.0 --to 2.13.0") in text
