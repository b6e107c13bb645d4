"""What a run is at: on a terminal one line that names it, elsewhere a line for each tenth of the run."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

EVERY = 0.1
"""Seconds between two changes of the line, so that drawing it costs nothing."""

TENTHS = 10

_CELL = re.compile(r"\[(?P<clause>[^:\]]+):(?P<family>[^:\]]+):(?P<kind>[^:\]]+):(?P<device>[^:\]]+)\]$")
_EXPLORATION = re.compile(r"\[(?P<family>[^:\]]+):(?P<device>[^:\]]+)\]$")


class Progress:
    """A plugin of the controlling process; what pytest prints instead is a letter for each of thousands of cells."""

    def __init__(self, reporter: Any) -> None:
        """``reporter`` is pytest's own, which writes to the terminal or the pipe."""
        self._reporter = reporter
        self._total = 0
        self._ended = 0
        self._failed = 0
        self._said = 0.0
        self._tenth = 0

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Names what begins."""
        if self._reporter.isatty and time.monotonic() - self._said >= EVERY:
            self._said = time.monotonic()
            self._rewrite(f"{self._share():3.0f} %{self._failures()}  {words(nodeid)}")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Counts what fails."""
        self._failed += report.outcome == "failed"

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Counts what has ended."""
        self._ended += 1
        tenth = int(self._share() // TENTHS)
        if not self._reporter.isatty and tenth > self._tenth:
            self._tenth = tenth
            self._reporter.write_line(f"{tenth * TENTHS:3} %{self._failures()}  {words(nodeid)}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Leaves the line empty."""
        if self._reporter.isatty:
            self._rewrite("")

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self, report: Any) -> Any:
        """No letters: what fails is counted."""
        status = yield
        if not status:
            return status
        category, _, word = status
        return category, "", word

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """How many cells there are; pytest-xdist tells it before the first begins."""
        self._total = session.testscollected

    def _failures(self) -> str:
        return f", {self._failed:,} failed" if self._failed else ""

    def _share(self) -> float:
        total = self._total or self._reporter._session.testscollected
        return 100 * self._ended / total if total else 0.0

    def _rewrite(self, line: str) -> None:
        width = self._reporter._tw.fullwidth - 1
        self._reporter.rewrite(line[:width], erase=True)


def words(nodeid: str) -> str:
    """What an item is, in words.

    >>> words("conformance/test_networks.py::test_cell[BW-07:residual:full_backward:cpu]")
    'residual on cpu: BW-07 with full_backward'
    >>> words("conformance/test_exploration.py::test_new[residual:cpu]")
    'new networks of residual on cpu'
    >>> words("conformance/test_exploration.py::test_new_topologies[NOTSET]")
    'no new topologies'
    """
    if cell := _CELL.search(nodeid):
        return "{family} on {device}: {clause} with {kind}".format(**cell.groupdict())
    if exploration := _EXPLORATION.search(nodeid):
        return "new networks of {family} on {device}".format(**exploration.groupdict())
    name = nodeid.rpartition("::")[2].replace("_", " ")
    nothing = name.endswith("[NOTSET]")  # so pytest calls what is there for nothing
    return f"no {name[len('test ') : -len('[NOTSET]')]}" if nothing else name
