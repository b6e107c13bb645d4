"""The script that is chosen: of all ways to write it the first whose control passes and whose experiment fails here."""

from __future__ import annotations

import contextlib
import io
import linecache
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from hookcheck.errors import HookcheckError
from hookcheck.probe.compiling import compiles, compiling
from hookcheck.probe.garbage import young
from hookcheck.probe.state import preserved
from hookcheck.programs.processes import groups_closed
from hookcheck.programs.program import ALONE_HANG_LIMIT
from hookcheck.repro.controls import controls
from hookcheck.repro.heading import LONGEST, TOO_LONG
from hookcheck.repro.network import ITS_OWN, ONES, RANDOM
from hookcheck.repro.question import ERROR, SAME, VALUE, Question, question
from hookcheck.repro.reduce import INVALID
from hookcheck.repro.script import Control, Way, parts_of
from hookcheck.repro.shorter import shorter
from hookcheck.repro.sighting import Sighting

ALONE = "no control: no run that is one step away passes"
"""What a script says of which that is so."""

NAME = "repro"
"""The module that a script is while it runs in this process."""


class Chosen(NamedTuple):
    """The ``text`` of a script, and what it ``asked``."""

    text: str
    asked: Question


def chosen(sighting: Sighting) -> Chosen:
    """The first script that shows the fault in this process.

    Raises:
        HookcheckError: none does.
    """
    why, asked, remark = "no script shows it", question(sighting), ALONE

    def run(text: str) -> tuple[int | None, str]:
        with compiling(sighting.case.topology):
            return executed(text)

    for control in controls(sighting, asked):
        for way in _ways(control, asked, compiles(sighting.case.topology)):
            try:
                parts = parts_of(sighting, asked, replace(way, remark="" if control else remark))
            except INVALID:
                continue
            code, said = run(parts.text)
            if code == 1 and _raised(sighting, asked) in said:
                text = shorter(parts, run).text
                fits = text.count("\n") <= LONGEST
                if fits or not control:
                    return Chosen(text if fits else text.replace(f"# {remark}\n", "", 1), asked)
                remark = TOO_LONG
                break
            why = said or why
    raise HookcheckError(
        f"no script that shows {sighting.symptom.clause} on this network can be written yet ({why}); "
        "file it with the network's own program: hookcheck explain ID"
    )


def _raised(sighting: Sighting, asked: Question) -> str:
    """The type of the exception that a script must come to, where it is about one: not each one shows the fault."""
    raised = sighting.finding.observed if asked.place == ERROR else None
    return f"experiment: {str(raised).partition(':')[0]}" if raised else ""


def executed(text: str) -> tuple[int | None, str]:
    """The exit code of a script that is run in this process, and what it says; None if it raises an exception."""
    said = io.StringIO()
    module = ModuleType(NAME)  # pickle looks up in its module what a script defines, TorchScript reads it
    module.__file__ = f"{NAME}.py"
    linecache.cache[module.__file__] = (len(text), None, text.splitlines(keepends=True), module.__file__)
    with (
        young(),
        preserved(),
        groups_closed(),
        optimizers_preserved(),
        _known(module),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
    ):
        warnings.simplefilter("ignore")
        try:
            exec(compile(text, module.__file__, "exec"), vars(module))
        except SystemExit as end:
            return int(end.code or 0) if not isinstance(end.code, str) else 1, said.getvalue()
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"
    return 0, said.getvalue()


def executed_alone(text: str) -> tuple[int | None, str]:
    """The same of a script of a program that needs a process of its own; None as well if it does not come to an end."""
    with tempfile.TemporaryDirectory(prefix="hookcheck-repro-") as folder:
        path = Path(folder) / f"{NAME}.py"
        path.write_text(text, encoding="utf-8")
        command = [sys.executable, "-W", "ignore", str(path), "--run"]  # it watches over itself without that word
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=ALONE_HANG_LIMIT / 2, check=False)
        except subprocess.TimeoutExpired:
            return None, "it hangs"
    return done.returncode, done.stdout


@contextlib.contextmanager
def optimizers_preserved() -> Iterator[None]:
    """On leaving, puts back the hooks on all optimizers: a script ends with its fact, and leaves its own behind."""
    module = import_module("torch.optim.optimizer")
    tables = [vars(module)[name] for name in vars(module) if name.startswith("_global_optimizer")]
    contents = [dict(table) for table in tables]
    try:
        yield
    finally:
        for table, content in zip(tables, contents):
            table.clear()
            table.update(content)


@contextlib.contextmanager
def _known(module: ModuleType) -> Iterator[None]:
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        del sys.modules[module.__name__]
        linecache.cache.pop(f"{NAME}.py", None)


def _ways(control: Control, asked: Question, compiled: bool) -> Iterator[Way]:
    alike = asked.place == VALUE and asked.relation == SAME  # the parameters of both runs begin alike
    drawn = (ITS_OWN,) if asked.of_numbers else (RANDOM, ITS_OWN) if alike else (ONES, RANDOM, ITS_OWN)
    anew = (False, True) if compiled and control.hooked else (False,)
    for fresh, numbers, everywhere in product(anew, drawn, (False, True)):
        yield Way(control, numbers, everywhere, fresh)
