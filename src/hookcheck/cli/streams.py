"""Standard output and standard error of a process: what is written when nobody reads any more goes nowhere.

An exit code is the answer to a question, so it may not depend on how much of the text `head` has read.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO

from hookcheck.errors import HookcheckError


class _Sink(io.FileIO):
    """A file whose reader may go away, and whose disk may be full."""

    failed = False

    def write(self, data: Any) -> int:
        """Writes what is still read.

        Raises:
            HookcheckError: the first time that nothing can be written, for any other reason.
        """
        if self.failed:
            return len(data)
        try:
            return super().write(data)
        except BrokenPipeError:
            return len(data)
        except OSError as error:
            self.failed = True
            raise HookcheckError(f"the output cannot be written: {error.strerror}") from None


def keep_writing() -> None:
    """From now on a reader that goes away stops nothing, and neither does a stream that was closed from the start.

    Such a stream has a buffer: without one (`python -u`) the rest of a text that a pipe takes in part is lost.
    """
    sys.stdout, sys.stderr = _lasting(sys.stdout), _lasting(sys.stderr)


def _lasting(stream: TextIO | None) -> TextIO:
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    stream.flush()
    buffer = io.BufferedWriter(_Sink(stream.fileno(), "w", closefd=False))
    at_once = stream.isatty() or stream is sys.__stderr__
    return io.TextIOWrapper(buffer, stream.encoding, stream.errors, line_buffering=at_once)
