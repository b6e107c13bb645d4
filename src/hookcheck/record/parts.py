"""What has a run seen so far? Part files: every worker process appends its cases to a file of its own.

So a run that is cut off at any moment has lost nothing that was finished.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from hookcheck.contract.verdict import CRASHED, NOT_OFFERED, NOT_RUN, RAN, TIMED_OUT, CaseResult
from hookcheck.record.errors import UnwritableReports, WrongSchema
from hookcheck.record.lines import Line, canonical, cases_of
from hookcheck.record.model import Plan, ordered

_WEIGHT = (CRASHED, TIMED_OUT, RAN, NOT_OFFERED, NOT_RUN)
"""Of several results of one case, the outcome that counts: a crash hides what ran, what ran outdoes a placeholder."""


class Part:
    """The part file of one worker; it is made when the first line is added."""

    def __init__(self, path: Path) -> None:
        """``path`` is the file's; its folder need not be there yet."""
        self.path = path
        self._file: BinaryIO | None = None

    def append(self, *lines: Line) -> None:
        """Add ``lines``; they have left this process when the call returns.

        Raises `UnwritableReports` where the folder cannot be written.
        """
        text = "".join(f"{canonical(line)}\n" for line in lines)
        try:
            if self._file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self.path.open("a+b")
                self._mend(self._file)
            self._file.write(text.encode())
            self._file.flush()
        except OSError as fault:
            raise UnwritableReports(self.path.parent, fault) from None

    @staticmethod
    def _mend(file: BinaryIO) -> None:
        """Drop a last line that was cut in the middle when the process that wrote it was killed."""
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)

    def close(self) -> None:
        """Close the file; a later `append` opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None


def read_parts(folder: Path) -> list[Line]:
    """The lines of all part files in ``folder``, without a last line that was cut in the middle.

    Raises `WrongSchema` for any other line that is not JSON.
    """
    return [line for path in sorted(folder.glob("*.jsonl")) for line in _read_part(path)]


def _read_part(path: Path) -> list[Any]:
    lines = path.read_bytes().split(b"\n")
    lines.pop()  # what follows the last line break: nothing, or a line that was cut in the middle
    read = []
    for number, line in enumerate(lines, start=1):
        try:
            read.append(json.loads(line))
        except ValueError:
            raise WrongSchema(path, number, "the line is not JSON") from None
    return read


def merge(lines: Iterable[Line], plan: Plan) -> tuple[CaseResult, ...]:
    """The cases of ``lines``, each once, in the order of ``plan``: family, hook kind, origin, topology.

    A case that is there twice keeps the result that weighs most: crashed, timed out, ran, not offered, not run; of two
    that ran, the one with more deviations. So a placeholder (not run) for every planned case may go in beforehand.
    """
    best: dict[tuple[str, str, str, str], CaseResult] = {}
    for case in chain.from_iterable(map(cases_of, lines)):
        key = (case.family, case.kind, case.origin, case.topology)
        best[key] = heavier(case, best.get(key, case))  # a reason of its own outdoes a placeholder's
    return ordered(best.values(), plan)


def heavier(one: CaseResult, other: CaseResult) -> CaseResult:
    """Of two results of one case the one that weighs more; the first where they weigh alike."""
    return min(one, other, key=_weight)


def _weight(case: CaseResult) -> tuple[int, int]:
    return _WEIGHT.index(case.outcome), -len(case.deviations)
