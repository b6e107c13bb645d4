from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hookcheck.run.progress import Progress, words


class Reporter:
    """What pytest's reporter offers, with what was written to it."""

    def __init__(self, terminal: bool) -> None:
        self.isatty = terminal
        self.lines: list[str] = []
        self._tw = SimpleNamespace(fullwidth=40)
        self._session = SimpleNamespace(testscollected=20)

    def write_line(self, line: str) -> None:
        self.lines.append(line)

    def rewrite(self, line: str, erase: bool) -> None:
        self.lines.append(line)


def run(reporter: Reporter, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    now = iter(range(1, 1000))
    monkeypatch.setattr("hookcheck.run.progress.time.monotonic", lambda: float(next(now)))
    progress = Progress(reporter)
    for number in range(20):
        id = f"conformance/test_networks.py::test_cell[BW-{number:02}:residual:full_backward:cpu]"
        progress.pytest_runtest_logstart(id)
        progress.pytest_runtest_logreport(SimpleNamespace(outcome="failed" if number == 12 else "passed"))
        progress.pytest_runtest_logfinish(id)
    progress.pytest_sessionfinish()
    return reporter.lines


def test_a_pipe_gets_a_line_for_each_tenth_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = run(Reporter(terminal=False), monkeypatch)
    assert len(lines) == 10
    assert lines[0] == " 10 %  residual on cpu: BW-01 with full_backward"
    assert lines[5] == " 60 %  residual on cpu: BW-11 with full_backward"
    assert lines[6] == " 70 %, 1 failed  residual on cpu: BW-13 with full_backward"
    assert lines[-1].startswith("100 %, 1 failed  ")


def test_a_terminal_names_what_runs_on_one_line_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = run(Reporter(terminal=True), monkeypatch)
    assert lines[0] == "  0 %  residual on cpu: BW-00 with full_backward"[:39]
    assert len(lines[0]) == 39
    assert lines[-1] == ""


@pytest.mark.parametrize(
    ("nodeid", "said"),
    [
        ("a.py::test_cell[P-1:program:tensor-hooks:cuda]", "program on cuda: P-1 with tensor-hooks"),
        ("a.py::test_new[residual:cpu]", "new networks of residual on cpu"),
        ("conformance/systems/x.py::test_two_steps", "test two steps"),
    ],
)
def test_an_item_in_words(nodeid: str, said: str) -> None:
    assert words(nodeid) == said


def test_there_are_no_letters() -> None:
    def status(outcome: str, given: Any) -> Any:
        wrapped = Progress(Reporter(terminal=False)).pytest_report_teststatus(SimpleNamespace(outcome=outcome))
        next(wrapped)
        with pytest.raises(StopIteration) as ended:
            wrapped.send(given)
        return ended.value.value

    assert status("passed", ("passed", ".", "PASSED")) == ("passed", "", "PASSED")
    assert status("failed", ("failed", "F", "FAILED")) == ("failed", "", "FAILED")
    assert status("passed", ("", "", "")) == ("", "", "")
