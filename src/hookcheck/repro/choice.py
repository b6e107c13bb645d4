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
from itertools import islice, product
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import BACKWARD, KINDS
from hookcheck.oracle.graph import Tensor
from hookcheck.oracle.trace import trace
from hookcheck.probe.compiling import compiles, compiling
from hookcheck.probe.garbage import young
from hookcheck.probe.run import lacking
from hookcheck.probe.state import preserved
from hookcheck.programs.processes import groups_closed
from hookcheck.programs.program import ALONE_HANG_LIMIT
from hookcheck.repro.network import ITS_OWN, ONES, RANDOM, network
from hookcheck.repro.question import ALIVE, CALLS, ERROR, SAME, VALUE, WARNINGS, Question, question
from hookcheck.repro.reduce import INVALID, one_step_away
from hookcheck.repro.script import Control, Way, parts_of
from hookcheck.repro.shorter import shorter
from hookcheck.repro.sighting import Sighting
from hookcheck.topology.model import Backward, Call, Grad, Topology, statements
from hookcheck.topology.tree import Ref
from hookcheck.topology.values import values

NEIGHBOURS = 200
"""So many networks that are one step away are tried as a control."""

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
    why, asked = "no script shows it", question(sighting)

    def run(text: str) -> tuple[int | None, str]:
        with compiling(sighting.case.topology):
            return executed(text)

    for control in controls(sighting, asked):
        for way in _ways(control, asked, compiles(sighting.case.topology)):
            try:
                parts = parts_of(sighting, asked, way)
            except INVALID:
                continue
            code, said = run(parts.text)
            if code == 1 and _raised(sighting, asked) in said:
                return Chosen(shorter(parts, run).text, asked)
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


def controls(sighting: Sighting, asked: Question) -> Iterator[Control]:
    """What may pass, the plainest first; at last nothing at all."""
    case = sighting.case
    if asked.compared:
        yield Control(hooked=True)
        return
    compared = asked.place in (ALIVE, WARNINGS)
    if compared or (asked.place in (ERROR, VALUE) and not sighting.symptom.unhooked):
        yield Control(hooked=True)
    if case.kind.call == BACKWARD and case.kind.variant == "legacy":
        full = KINDS["full_backward" if case.kind.scope == "module" else "global_full_backward"]
        if not lacking(full.name) and asked.place == CALLS:
            yield Control(register=full.register)
    if asked.place == CALLS and asked.index and asked.argument in ("grad_input", "grad_output"):
        yield from (Control(value=i.name) for i in case.topology.inputs if i.requires_grad)
    classes = set(network(case.topology, ONES, "").classes)
    acting = _acts(case.topology)
    for near in islice(_near(case.topology), NEIGHBOURS):
        try:
            known = classes.issuperset(network(near, ONES, "").classes)
        except INVALID:
            continue
        if known and _acts(near) == acting:
            yield Control(topology=near)
    yield Control()


def _near(topology: Topology) -> Iterator[Topology]:
    """Networks that differ in one step, those first whose backward starts at the output, or another tensor of it."""
    outputs: list[Ref] = []
    with contextlib.suppress(*INVALID):
        outputs = [Ref("y", path) for path in _tensors(trace(topology, values(topology)).names.get("y"))]
    for i, statement in enumerate(topology.main):
        if isinstance(statement, (Backward, Grad)):
            for output in (output for output in outputs if statement.outputs != (output,)):
                changed = replace(statement, outputs=(output,), cotangents=statement.cotangents[:1])
                yield replace(topology, main=(*topology.main[:i], changed, *topology.main[i + 1 :]))
    yield from one_step_away(topology)


def _acts(topology: Topology) -> tuple[bool, bool]:
    """Whether main calls the net, and goes back: where a hook is never due, nothing that it could be given is wrong."""
    called = any(isinstance(act, Call) and not act.target for act in statements(topology))
    return called, any(isinstance(act, (Backward, Grad)) and bool(act.outputs) for act in statements(topology))


def _tensors(value: object, path: tuple[int | str, ...] = ()) -> Iterator[tuple[int | str, ...]]:
    """Where the tensors are in what a call gives."""
    if isinstance(value, Tensor):
        yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (tuple, list)) else ()
    for key, entry in entries:
        yield from _tensors(entry, (*path, key))
