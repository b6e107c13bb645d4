"""What can be wrong with a record file? One named error for each kind of corruption.

Each says which file and line, what is wrong there and what to do, in one line.
"""

from __future__ import annotations

from pathlib import Path

from hookcheck.errors import HookcheckError

RUN_AGAIN = "run `pytest conformance/` on that torch again, or delete the file"


class RecordError(HookcheckError):
    """A record cannot be used; ``path``, ``line``, ``cause`` and ``remedy`` say where, why and what to do."""

    def __init__(self, path: Path, line: int | None, cause: str, remedy: str = RUN_AGAIN) -> None:
        """``line`` counts from 1; None where the fault is the whole file's."""
        where = str(path) if line is None else f"{path}, line {line}"
        super().__init__(f"{where}: {cause}; {remedy}")
        self.path = path
        self.line = line
        self.cause = cause
        self.remedy = remedy


class UnreadableRecord(RecordError):
    """The file cannot be opened."""


class EmptyRecord(RecordError):
    """The file holds nothing."""


class TruncatedRecord(RecordError):
    """The file ends too early: its last line was cut in the middle, or there is no footer."""


class WrongSchema(RecordError):
    """A line is not JSON, or not what the published schema says."""


class DuplicateCase(RecordError):
    """One case (family, topology, kind, origin) is there twice."""


class InconsistentRecord(RecordError):
    """The lines are well formed, but contradict each other."""


class UnwritableReports(HookcheckError):
    """The folder for records cannot be written."""

    def __init__(self, folder: Path, fault: OSError) -> None:
        """``fault`` is what the operating system said."""
        super().__init__(
            f"cannot write into {folder} ({fault.strerror or fault}); choose another folder, or mend its permissions"
        )
        self.folder = folder
