"""What a script says of one torch, in a process of its own: that the fault shows, that it does not, or nothing."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hookcheck.errors import HookcheckError
from hookcheck.record.model import public_version
from hookcheck.releases.numbers import release
from hookcheck.repro.environments import NoEnvironment, environment, release_named
from hookcheck.repro.heading import FAILS, LACKS

CRASHES = ("crashed", "import error")
"""How the reason of a skip begins where a script ends as none does that says something."""

SHOWS, HOLDS, SKIP = "shows", "as documented", "skip"
"""The verdicts: the fault shows, it does not, or the script says nothing of that torch."""

NAME_ONE = "name a script that `hookcheck repro` wrote, or one that ends as those do"
"""What to do where a file is no script."""

CONTROL_FAILS = "AssertionError: the control fails"
"""How a script by hand says so, which has ``assert ..., "the control fails"``."""

LIMIT = 120
"""Seconds that a run may take: what those who triage PyTorch's issues grant it."""


@dataclass(frozen=True)
class Verdict:
    """What a script says of a release: ``verdict`` in ``shows`` of ``runs`` runs; ``why`` it is a skip; its output."""

    torch: str
    verdict: str
    why: str = ""
    shows: int = 0
    runs: int = 1
    output: str = ""

    @property
    def flaky(self) -> bool:
        """Whether not all runs said the same."""
        return 0 < self.shows < self.runs

    @property
    def crashed(self) -> bool:
        """Whether it raised an exception of its own, or ended as no script does."""
        return self.verdict == SKIP and self.why.startswith(CRASHES)

    def text(self) -> str:
        """The verdict for people."""
        if self.flaky:
            return f"shows in {self.shows} of {self.runs} runs"
        return f"{self.verdict}: {self.why}" if self.why else self.verdict


def checked(path: Path) -> str:
    """The text of a script that can be run anywhere.

    Raises:
        HookcheckError: it cannot be read, is not Python, or imports something besides torch and the standard library.
    """
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text, path.name)
    except OSError as error:
        raise HookcheckError(f"{path} cannot be read ({error.strerror}); {NAME_ONE}") from None
    except UnicodeDecodeError:
        raise HookcheckError(f"{path} cannot be read (it is not text in UTF-8); {NAME_ONE}") from None
    except (SyntaxError, ValueError) as error:
        raise HookcheckError(f"{path} is not Python: {error}; {NAME_ONE}") from None
    known = {"torch", "__future__", *getattr(sys, "stdlib_module_names", ())}  # Python 3.9 does not know its own
    foreign = sorted({name for name in _imported(tree) if name not in known})
    if foreign and hasattr(sys, "stdlib_module_names"):
        raise HookcheckError(
            f"{path} imports {', '.join(foreign)}: a script for a report needs torch and the standard library alone"
        )
    return text


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." if node.level else (node.module or "").partition(".")[0]


def here(path: Path, torch: str, runs: int = 1, limit: float = LIMIT) -> Verdict:
    """What a script says of the torch of this Python."""
    return judged(path, Path(sys.executable), torch, runs, limit)


def on(path: Path, torch: str, runs: int = 1, limit: float = LIMIT, present: str = "") -> Verdict:
    """What a script says of a release: of the ``present`` torch here, of any other in an environment of its own.

    Raises:
        HookcheckError: there is no such release, or no uv.
    """
    if torch == public_version(present):
        return here(path, torch, runs, limit)
    release = release_named(torch)
    try:
        with environment(release) as python:
            return judged(path, python, torch, runs, limit)
    except NoEnvironment as error:
        return Verdict(torch, SKIP, f"cannot install: {error}")


def judged(path: Path, python: Path, torch: str, runs: int, limit: float) -> Verdict:
    """What a script says, run so often by a ``python``: the first skip ends it."""
    outcomes = []
    for _ in range(runs):
        code, why, output = _run(path, [str(python), "-I", *_ending(torch), str(path)], limit)
        if code not in (0, 1):
            return Verdict(torch, SKIP, why, output=output)
        outcomes.append((code, output))
    counts = Counter(code for code, _ in outcomes)
    output = next((text for code, text in outcomes if code == 1), outcomes[0][1])
    return Verdict(torch, SHOWS if counts[1] else HOLDS, "", counts[1], runs, output)


ENDING = """import os, runpy, sys, traceback
sys.argv, code = sys.argv[1:], 0
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit as end:
    code = end.code if isinstance(end.code, int) else int(end.code is not None)
    print(end.code if isinstance(end.code, str) else "", end="", file=sys.stderr)
except BaseException:
    code = 1
    traceback.print_exc()
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)
"""
"""Runs a script and ends at once, without what torch does as a process ends: until 1.9 its engine waits there for a
thread that Python may have ended already, and so for ever (`Engine::~Engine`)."""


def _ending(torch: str) -> list[str]:
    """What makes sure that a script ends on a release that may hang as its process ends."""
    return ["-c", ENDING] if release(torch) < (1, 9) else []


def _run(path: Path, command: list[str], limit: float) -> tuple[int | None, str, str]:
    """The exit code where it says something of torch, else None and why; and what the script printed."""
    settings = {**os.environ, "PYTHONHASHSEED": "0"}
    settings.pop("PYTHONPATH", None)
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=limit,
            env=settings,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, f"still running after {limit:g} s", ""
    output = (done.stdout + done.stderr).strip().replace(str(path.resolve()), path.name).replace(str(path), path.name)
    output = re.sub(r"/\S*/site-packages/", "", output)  # where things are on this machine is no matter
    last = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""
    if done.returncode == LACKS:
        return None, "this torch lacks the API, or this machine the device", output
    if done.returncode == FAILS or last == CONTROL_FAILS:
        return None, "its control fails", output
    if done.returncode < 0:
        return None, f"crashed by signal {-done.returncode}", output
    error, frames = _raised(done.stderr, path)
    if (error and not _asserts(error, frames, path)) or done.returncode not in (0, 1):
        kind = CRASHES[error.startswith(("ImportError", "ModuleNotFoundError"))]
        return None, f"{kind}: {error or last or f'exit code {done.returncode}'}", output
    return done.returncode, "", output


TRACEBACK = "Traceback (most recent call last):\n"
COMPARING = re.compile(r"\btorch/testing/|\bunittest/")
"""Where functions are that compare, and raise an AssertionError for whoever calls them."""


def _raised(said: str, script: Path) -> tuple[str, list[str]]:
    """The first line of what an exception that nothing caught says, and the files of its frames; empty without one.

    Of an exception that it caught, torch logs a traceback which does not begin in the script.
    """
    _, begins, traceback = said.rpartition(TRACEBACK)
    if not begins:
        return "", []
    lines = traceback.splitlines()
    frames = [match[1] for line in lines if (match := re.match(r'  File "(.*)", line \d+', line))]
    if frames and not any(Path(frame).resolve() == script.resolve() for frame in frames):
        return "", []
    return next((line for line in lines if line and not line.startswith(" ")), "an exception"), frames


def _asserts(error: str, frames: list[str], script: Path) -> bool:
    """Whether an exception says that something is not as the script has it: the script's own ``assert``, or a function
    that compares for it. What torch asserts in its own code is a crash."""
    asserting = [frame for frame in frames if not COMPARING.search(frame.replace("\\", "/"))]
    return error.startswith("AssertionError") and bool(asserting) and Path(asserting[-1]).resolve() == script.resolve()
