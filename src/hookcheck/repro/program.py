"""What goes into a bug report about a program? Its own source, with whatever it uses, in one script that needs torch
alone."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hookcheck.errors import HookcheckError
from hookcheck.oracle.tolerance import STATED
from hookcheck.programs.program import Program
from hookcheck.repro.alone import PACKAGE, alone
from hookcheck.repro.links import links
from hookcheck.repro.script import comment, release_lacks, templates

GIVEN = {"hookcheck.programs.check": frozenset({"Check", "NotOffered", "NotRun"})}
"""What a script defines by itself."""

PRELUDE = ("import math", "import sys", "import warnings", "import torch")
"""What it imports in any case."""


MORE = re.compile(rf"{PACKAGE}|^ *(?:from|import) (?:hypothesis|numpy)\b", re.MULTILINE)
"""What shows that a program needs more than torch: a module that it gets late, or generated acts."""


def program_script(program: Program, device: str | None = None) -> str:
    """The script that runs ``program`` on ``device`` (None: the one that it is about, or ``cpu``).

    It ends with exit code 1 where a fact is not so, 0 where all are, and 2 where its torch or its machine lacks what it
    needs.

    Raises:
        HookcheckError: the program is about another device, or needs more than torch, as TorchScript does.
    """
    about = program.device if program.device != "any" else None
    device = device or about or "cpu"
    if about not in (None, device):
        raise HookcheckError(f"program {program.id} is about {about}; add --device {about}")
    module, name = program.judge.__module__, program.judge.__name__
    found = alone(module, name, GIVEN)
    if any(map(MORE.search, (*found.imports, *found.definitions))):
        raise HookcheckError(f"no script can be written yet for program {program.id}: it needs more than torch")
    own, torches = _imports({*PRELUDE, *found.imports})
    text = (
        templates()
        .get_template("program.j2")
        .render(
            header=_header(program),
            imports=own,
            torches=torches,
            lacks=_lacks(program, device),
            definitions=found.definitions,
            name=name,
            device=device,
            bound=STATED,
        )
    )
    return re.sub(r"\n{4,}", "\n\n\n", text).rstrip("\n") + "\n"


def _header(program: Program) -> str:
    """The comment at the top: what is promised, where, and how to read the result."""
    paragraphs = [
        f"{program.id} ({program.rank}, since torch {program.since}): {program.statement}",
        f"Source: {program.source}",
        *links(program.source),
        "Run it with python and torch. Exit code 1: something is not as promised; 0: all is; 2: this torch or machine "
        "lacks something." + (" That it crashes or hangs is a fault as well." if program.alone else ""),
    ]
    return "\n".join(line for text in paragraphs for line in comment(text))


def _imports(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    """Import statements in the order of PEP 8: those of the standard library, and those of torch."""
    ordered = sorted(lines, key=lambda line: (line.startswith("from"), line))
    of_torch = [line for line in ordered if line.split()[1].partition(".")[0] == "torch"]
    return [line for line in ordered if line not in of_torch], of_torch


def _lacks(program: Program, device: str) -> list[tuple[str, str]]:
    """The conditions under which a torch cannot run the script, each with what it lacks."""
    what = f"what this is about (since {program.since})"
    found = release_lacks(program.since, what)
    if device == "cuda":
        found += [*release_lacks("2.0", "torch.device as a context manager (since 2.0)")]
        found.append(("not torch.cuda.is_available()", "a CUDA device"))
    return found
