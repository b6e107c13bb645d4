"""A run of the suite on each release of the list, one after another, each in an environment of its own.

tox makes the environments (``tox.ini``); here is the order, what is there already, what is removed afterwards, and what
became of each release.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.verdict import NOT_RUN
from hookcheck.errors import HookcheckError
from hookcheck.record.errors import RecordError
from hookcheck.record.model import Record, record_name
from hookcheck.record.reading import read
from hookcheck.releases import NIGHTLY, releases
from hookcheck.topology.corpus import digest
from hookcheck.topology.corpus import read as read_corpus
from hookcheck.topology.families import FAMILIES

CONFORMS, DEVIATES, THERE = "conforms", "deviates", "there already"
"""What became of a release, beside *not run*: the ledger explains all, it does not, or its record stood before."""

TESTS_FAILED = 1
"""Exit code of pytest where a test failed."""


@dataclass(frozen=True)
class Outcome:
    """What became of one release: ``outcome`` with its ``reason`` where it was not run, after ``seconds``."""

    torch: str
    outcome: str
    reason: str
    seconds: int
    record: str


def chosen(names: Iterable[str], shard: tuple[int, int] = (1, 1)) -> tuple[str, ...]:
    """The releases of these names, all of the list where there is none; of them the ``shard``-th share of so many.

    Raises:
        HookcheckError: the list has no release of a name, or there is no such share.
    """
    known = [release.torch for release in releases()]
    names = tuple(names)
    for name in names:
        if name not in (*known, NIGHTLY):
            near = [each for each in known if Version(each).release[:2] == _minor(name)]
            raise HookcheckError(f"no release {name!r} in the list; choose from {', '.join(near or [*known, NIGHTLY])}")
    number, count = shard
    if not 1 <= number <= count:
        raise HookcheckError(f"there is no share {number} of {count}: choose from 1 to {count}")
    return (names or tuple(known))[number - 1 :: count]


def _minor(name: str) -> tuple[int, ...]:
    try:
        return Version(name).release[:2]
    except ValueError:
        return ()


def current_corpus(folder: Path) -> dict[str, str]:
    """The digest of each family's corpus in ``folder``."""
    return {family: digest(read_corpus(folder, family)) for family in FAMILIES}


def is_current(record: Record, corpus: Mapping[str, str]) -> bool:
    """Whether ``record`` says what a run would say today: complete, of this ``corpus`` and of the clauses there are."""
    plan = record.header.plan
    of_record = {family: file.digest for family, file in plan.corpus.items()}
    return record.footer.complete and of_record == corpus and [c.id for c in plan.clauses] == [*CLAUSES]


@dataclass(frozen=True)
class Matrix:
    """Where a matrix runs: the ``clone`` with tox.ini, the folder of ``reports``, and the ``corpus`` of today.

    With ``keep`` an environment stays; with ``again`` a release whose record stands is run once more.
    """

    clone: Path
    reports: Path
    corpus: Mapping[str, str]
    keep: bool
    again: bool

    def run(self, torch: str, pytest_args: Sequence[str] = ()) -> Outcome:
        """Runs the suite on one release, or says why it was not run. What tox printed is in ``.tox/matrix``."""
        begun = time.monotonic()
        record = self.reports / "records" / record_name(torch, "cpu")
        if not self.again and self._stands(record):
            return Outcome(torch, THERE, "", 0, str(record))
        environment = self.clone / ".tox" / f"torch{torch}"
        before = self._written()
        try:
            outcome, reason = self._tested(torch, pytest_args)
        finally:
            if not self.keep:
                shutil.rmtree(environment, ignore_errors=True)
        new = [path for path, at in self._written().items() if before.get(path) != at]
        if outcome != NOT_RUN and not new:
            outcome, reason = NOT_RUN, f"the run left no record; see {self._log(torch)}"
        return Outcome(torch, outcome, reason, round(time.monotonic() - begun), ", ".join(map(str, new)))

    def _tested(self, torch: str, pytest_args: Sequence[str]) -> tuple[str, str]:
        log = self._log(torch)
        if self._tox(log, "wb", "run", "--notest", "-e", f"torch{torch}"):
            return NOT_RUN, f"its environment cannot be made: {_last_fault(log)}"
        arguments = ["--reports", str(self.reports.resolve()), *pytest_args]
        status = self._tox(log, "ab", "run", "--skip-pkg-install", "-e", f"torch{torch}", "--", *arguments)
        if status in (0, TESTS_FAILED):
            return (DEVIATES if status else CONFORMS), (_last_line(log) if status else "")
        return NOT_RUN, f"pytest ended with exit code {status}: {_last_fault(log)}"

    def _tox(self, log: Path, mode: str, *arguments: str) -> int:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open(mode) as output:
            command = [sys.executable, "-m", "tox", "--colored", "no", *arguments]
            return subprocess.run(
                command, cwd=self.clone, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False
            ).returncode

    def _log(self, torch: str) -> Path:
        return self.clone / ".tox" / "matrix" / f"torch{torch}.log"

    def _stands(self, path: Path) -> bool:
        try:
            return is_current(read(path), self.corpus)
        except RecordError:
            return False

    def _written(self) -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in self.reports.glob("*/torch-*.jsonl.gz")}


def _lines(log: Path) -> list[str]:
    return [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]


def _last_line(log: Path) -> str:
    """The line in which pytest sums up, tox's own lines after it aside."""
    sums = [line.strip("= ") for line in _lines(log) if line.endswith("s") or line.startswith("=")]
    said = [line for line in sums if " passed" in line or " failed" in line]
    return said[-1] if said else _last_fault(log)


def _last_fault(log: Path) -> str:
    """The last line that speaks of an error, with the cause that uv adds; else the last but tox's own."""
    lines = [line for line in _lines(log) if not line.startswith(("evaluation failed", "torch", "congratulations"))]
    words = ("error", "no solution", "not find")
    faults = [place for place, line in enumerate(lines) if any(word in line.lower() for word in words)]
    if not faults:
        return lines[-1] if lines else "it said nothing"
    fault, *after = lines[faults[-1] :]
    cause = re.match(r"(?:cause: |╰─▶ )(.+)", after[0] if after else "")
    return f"{fault.rstrip(':')}: {cause[1]}" if cause else fault
