"""Scripts that each have a process of their own, and start at once: copies of one that has imported what they need.

It has run nothing: what torch starts in a backward, as threads, would not be in a copy.
"""

from __future__ import annotations

import ast
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hookcheck.programs.program import ALONE_HANG_LIMIT
from hookcheck.repro.choice import NAME, executed_alone
from hookcheck.repro.search import Run

PREPARED = """
import os, runpy, sys
from contextlib import suppress
from importlib import import_module

for name in sys.argv[1:]:
    with suppress(Exception):
        import_module(name)
print(flush=True)
for path in map(str.strip, sys.stdin):
    copy = os.fork()
    if not copy:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]), flush=True)
else:
    sys.exit()
for descriptor, file in ((0, os.devnull), (1, path + ".said"), (2, os.devnull)):
    os.dup2(os.open(file, os.O_RDWR | os.O_CREAT), descriptor)
sys.argv, code = [path, "--run"], 0
try:
    runpy.run_path(path, run_name="__main__")
except BaseException as end:
    code = 1 if not isinstance(end, SystemExit) or isinstance(end.code, str) else int(end.code or 0)
sys.stdout.flush()
os._exit(code)
"""
"""The process that is copied: it says when it has imported all, then reads where a script is and says how that ended.
A copy ends with its script: to take down all that torch has imported takes ten times as long as to run it."""

SLOWER, LEAST = 8, 10
"""A script hangs that takes so many times as long as the first one, which is the whole program, and so many seconds."""

MODULE = re.compile(r"torch(?:\.\w+)+")


def modules(script: str) -> list[str]:
    """The modules that a script imports, those that it names in strings, and whatever else may be one."""
    names = {"torch"}
    for node in ast.walk(ast.parse(script)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and MODULE.fullmatch(str(node.value)):
            names.add(str(node.value))
    return sorted(names)


@contextmanager
def prepared() -> Iterator[Run]:
    """What runs scripts of one program as `hookcheck.repro.choice.executed_alone` does, in less time where it can."""
    if not hasattr(os, "fork"):
        yield executed_alone
        return
    running: list[subprocess.Popen[str]] = []
    limits: list[float] = []

    def run(script: str) -> tuple[int | None, str]:
        if not running:
            running.append(_begun(modules(script)))
        began = time.monotonic()
        longest = ALONE_HANG_LIMIT / 2
        code, said = _of_copy(running[0], script, limits[0] if limits else longest)
        if code is None:
            _ended(running.pop())
        elif not limits:
            limits.append(min(longest, max(LEAST, SLOWER * (time.monotonic() - began))))
        return code, said

    try:
        yield run
    finally:
        for process in running:
            _ended(process)


def _begun(names: list[str]) -> subprocess.Popen[str]:
    """The process that has imported these modules, as far as they are some: the time that takes is no script's."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PREPARED, *names],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    _line(process.stdout, ALONE_HANG_LIMIT)
    return process


def _ended(process: subprocess.Popen[str]) -> None:
    """Ends a process and its copies."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _of_copy(process: subprocess.Popen[str], script: str, limit: float) -> tuple[int | None, str]:
    """The exit code of a script in a copy, and what it says; None if it does not come to an end within ``limit``
    seconds."""
    assert process.stdin is not None
    assert process.stdout is not None
    with tempfile.TemporaryDirectory(prefix="hookcheck-repro-") as folder:
        path = Path(folder) / f"{NAME}.py"
        path.write_text(script, encoding="utf-8")
        process.stdin.write(f"{path}\n")
        process.stdin.flush()
        answer = _line(process.stdout, limit)
        said = path.with_name(f"{path.name}.said")
        return (int(answer), said.read_text(errors="replace")) if answer else (None, "it hangs")


def _line(pipe: IO[str], seconds: float) -> str:
    """The next line that comes out of a pipe; empty if none does in so many seconds, or its process has ended."""
    return pipe.readline().strip() if select.select([pipe], [], [], seconds)[0] else ""
