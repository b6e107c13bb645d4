"""What does a script need besides its acts? Imports, functions and classes that it speaks of, and the right torch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hookcheck.programs.situations.acts import Alter, Register, Trigger, Trouble
from hookcheck.programs.situations.axes import HOSTS, INPUTS, OPTIMIZERS, SURROUNDINGS, Choice
from hookcheck.programs.situations.fitting import LATER
from hookcheck.programs.situations.sites import SITES, Release
from hookcheck.repro.alone import alone
from hookcheck.repro.bare import bare
from hookcheck.repro.formatting import WIDTH
from hookcheck.repro.heading import LACKS
from hookcheck.repro.situations.noting import NUMBERS
from hookcheck.repro.situations.reduced import Scene
from hookcheck.repro.writing import is_needed

MODULES = ("copy", "gc", "pickle", "weakref")
BENCH_MODULE = "hookcheck.programs.situations.bench"
HELPERS = ("network", "part", "leaf", "attach", "in_thread", "checkpointed", "clear")
"""The functions of the bench that a script may call."""


class Needs(NamedTuple):
    """The ``code`` of a script with what it speaks of ahead of it, the ``imports``, and those that not all releases
    have, as a ``late`` block."""

    code: str
    imports: set[str]
    late: list[str]


def with_needs(code: str, scenes: Sequence[Scene]) -> Needs:
    """What the code of a script needs."""
    given, lines = _of_choices(scenes)
    definitions = _spoken_of(code, given)
    code = "\n\n\n".join([*(given[name] for name in definitions), code])
    helpers, more = _of_the_bench(code)
    code = "\n\n\n".join([*helpers, code])
    needed = {line for line in {*lines, *more} if is_needed(line, code)}
    late = sorted(line for line in needed if lines.get(line, (1, 7)) > (1, 7))
    block = [
        "try:",
        *(f"    {line}" for line in late),
        "except ImportError:",
        f"    raise SystemExit({LACKS}) from None",
    ]
    return Needs(code, needed - {*late} | {*_imports(code)}, ["\n".join(block)] if late else [])


def _of_choices(scenes: Iterable[Scene]) -> tuple[dict[str, str], dict[str, Release]]:
    """What choices define, by name, and the lines that import what that needs, each with the first release that can."""
    definitions, imports = dict[str, str](), dict[str, Release]()
    for choice in dict.fromkeys(choice for scene in scenes for choice in _choices(scene)):
        for node in ast.parse(choice.needs).body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                imports[ast.unparse(node)] = choice.since
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                definitions[node.name] = bare(ast.get_source_segment(choice.needs, node) or "")
    return definitions, imports


def _choices(scene: Scene) -> Iterator[Choice]:
    situation = scene.situation
    yield from (HOSTS[situation.host], OPTIMIZERS[situation.optimizer], INPUTS[situation.input])
    yield from (SURROUNDINGS[name] for name in scene.contexts)


def _spoken_of(code: str, definitions: dict[str, str]) -> list[str]:
    """Which of the definitions the code speaks of, or others of them that it speaks of, in their order."""
    names: set[str] = set()
    while True:
        everything = "\n".join([code, *(definitions[name] for name in names)])
        more = {name for name in definitions if re.search(rf"\b{name}\b", everything)}
        if more <= names:
            return [name for name in definitions if name in names]
        names |= more


def _of_the_bench(code: str) -> tuple[list[str], set[str]]:
    """The functions of the bench that a script calls, what makes numbers of what a hook is given, and imports."""
    definitions, imports = dict[str, None](), set[str]()
    for name in HELPERS:
        if re.search(rf"(?<![.\w]){name}\(", code):
            collected = alone(BENCH_MODULE, name, {})
            definitions.update(dict.fromkeys(collected.definitions))
            imports |= {line for line in collected.imports if "__future__" not in line}
    return [*definitions, *([NUMBERS.rstrip()] if "numbers" in code else [])], imports


def _imports(code: str) -> Iterator[str]:
    yield "import torch"
    if re.search(r"\bnn\.", code):
        yield "from torch import nn"
    yield from (f"import {name}" for name in MODULES if re.search(rf"\b{name}\.", code))
    yield from (f"from contextlib import {name}" for name in ("nullcontext", "suppress") if f"{name}(" in code)


def registering(code: str) -> list[str]:
    """The lines that import what registers hooks on all modules or optimizers, in a run: not every torch has it."""
    names = sorted({*re.findall(r"(?<![.\w])register_(?:optimizer|module)_\w+(?=\()", code)})
    lines: list[str] = []
    for module, word in (("torch.nn.modules.module", "_module_"), ("torch.optim.optimizer", "_optimizer_")):
        there = [name for name in names if word in name]
        line = f"from {module} import {', '.join(there)}"
        several = [f"from {module} import (", *(f"    {name}," for name in there), ")"]
        lines += several if len(line) + 4 > WIDTH else [line] if there else []
    return [*lines, ""] if lines else []


def since(scene: Scene) -> Release:
    """The first release that has all that a scene needs."""
    releases = [choice.since for choice in _choices(scene)]
    sites = {act.hook: SITES[act.site] for act in scene.acts if isinstance(act, Register)}
    for act in scene.acts:
        if isinstance(act, Register):
            releases.append(SITES[act.site].since)
        if isinstance(act, (Register, Trouble)) and act.first:
            releases.append(sites[act.hook].prepends or (1, 7))
        if isinstance(act, (Alter, Trigger)):
            names = (act.way, act.call) if isinstance(act, Trigger) else (act.what,)
            releases += [LATER.get(name, (1, 7)) for name in names]
    return max(releases)
