"""The script of a situation: reduced, set beside one that conforms, and written as one run of both."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hookcheck.contract.ledger import Ledger
from hookcheck.errors import HookcheckError
from hookcheck.programs.program import Program
from hookcheck.releases.numbers import release
from hookcheck.repro.choice import executed
from hookcheck.repro.editing import quoted
from hookcheck.repro.formatting import WIDTH, formatted
from hookcheck.repro.heading import LACKS, LONGEST, ending, header, since_guard
from hookcheck.repro.links import links
from hookcheck.repro.situations.acting import SceneWriter, Unwritable
from hookcheck.repro.situations.blocks import FLAG, merged, rendered
from hookcheck.repro.situations.needs import registering, since, with_needs
from hookcheck.repro.situations.noting import RAISED
from hookcheck.repro.situations.reduced import SCENES, Scene, controls, of_other_kinds, reduced
from hookcheck.repro.situations.title import titles, why
from hookcheck.repro.situations.wording import Wording, wordings


class Situated(NamedTuple):
    """The ``text`` of the script of a situation, and its ``title``."""

    title: str
    text: str


def situation_script(program: Program, fact: str, ledger: Ledger, device: str = "cpu") -> Situated:
    """The script of what a fact shows first, with the plainest control that passes.

    Raises:
        HookcheckError: it conforms, or no script shows it.
    """
    if device != "cpu":
        raise HookcheckError(f"no script can be written yet for program {program.id} on {device}")
    scene = reduced(program, SCENES[program.id](fact), ledger)
    headings = titles(scene)
    texts: list[str] = []
    for beside in (controls(scene), of_other_kinds(scene), [None]):
        texts = texts or [text for control in beside for text in _showing(program, scene, control, headings)]
    if not texts:
        raise HookcheckError(f"no script that shows {program.id} in {fact!r} can be written yet")
    return Situated(headings[0], min(texts, key=_weight))


def _weight(text: str) -> tuple[bool, int]:
    """Scripts that expect the same of both runs are plainer than others, and short ones than long ones."""
    return "control != [" in text, text.count("\n")


def _showing(program: Program, scene: Scene, control: Scene | None, headings: Sequence[str]) -> Iterator[str]:
    """The plainest script of a scene beside its control that shows here what the judge sees, if any does."""
    for wording in wordings(scene, control):
        try:
            text = _written(program, scene, control, wording, headings)
        except Unwritable:
            continue
        lines = text.split("\n")
        if len(lines) - 1 > LONGEST or max(map(len, lines)) > WIDTH:
            continue
        code, said = executed(text)
        if code == 1 and _agrees(said, scene, wording):
            yield text
            return


def _agrees(said: str, scene: Scene, wording: Wording) -> bool:
    """Whether a script says of the experiment what the judge sees; where it is cut off, by what at least."""
    observed = scene.observed
    errors = [RAISED.get(entry[1], entry[1]) for entry in observed if entry[0] == "raised"]
    if errors or wording.alive:
        return all(f"{error}(" in said for error in errors)
    sites = SceneWriter(scene, wording).logs.sites
    noted = ast.literal_eval(said.partition("experiment: ")[2].strip())
    return sorted(map(str, noted)) == sorted(map(str, wording.noting.entries(observed, sites)))


def _written(program: Program, scene: Scene, control: Scene | None, wording: Wording, headings: Sequence[str]) -> str:
    """The text of the script of a scene and its control in some wording.

    Raises:
        Unwritable: it does not do for them.
    """
    scenes = [scene, *([control] if control else [])]
    acting = [SceneWriter(each, wording) for each in scenes]
    statements = acting[0].statements()
    if control:
        statements = merged(acting[1].statements(), statements)
    lines = rendered(statements)
    body = [f"    {line}".rstrip() for line in (*registering("\n".join(lines)), *lines)]
    run = "\n".join([f"def run({FLAG if control else ''}):", *body])
    code = "\n\n\n".join([*_outside(acting[0], wording), run, _verdict(acting, wording)])
    needs = with_needs(code, scenes)
    guard = since_guard(".".join(map(str, max(release(program.since), *map(since, scenes)))))
    blocks = [
        header(headings, next(iter(links(program.source)), "").partition("#")[0]),
        "\n".join(sorted(needs.imports)),
        *needs.late,
        *(f"if {condition}:\n    raise SystemExit({LACKS})" for condition in guard),
        needs.code,
    ]
    return formatted("\n\n".join(blocks))


def _outside(acting: SceneWriter, wording: Wording) -> list[str]:
    """What stands at the top of a script whose hooks are pickled."""
    if not wording.outside:
        return []
    functions = rendered([acting.function(hook) for hook in sorted(acting.logs.sites)])
    if re.search(r"\b(?:handle|net|optimizer|waiting)", "\n".join(functions)):
        raise Unwritable("what is pickled with what is made in a run")
    return ["calls = []", "\n".join(functions)]


def _verdict(acting: list[SceneWriter], wording: Wording) -> str:
    """The lines at the end: both runs, what is expected, and the exit code."""
    names = ["control", "experiment"][-len(acting) :]
    runs = [f"run({FLAG}={name == 'experiment'})" for name in names] if acting[1:] else ["run()"]
    shown = [f"{name}() is None" if wording.alive else name for name in names]
    due = [_due(each, wording) for each in acting]
    expected = "expected" if due[0] == due[-1] else due[-1]
    holds = "{} == {}"
    if wording.alive or wording.failing:
        holds, expected = f"{{}}{'()' if wording.alive else ''} is None", "expected"
    lines = [
        *([] if "==" not in holds else [f"expected = {due[0]}  # {why(acting[0].scene, due[0])}"]),
        f"{', '.join(names)} = {', '.join(runs)}",
        *(["gc.collect()"] if wording.alive else []),
        f"print({', '.join(f'{chr(34)}{name}:{chr(34)}, {value}' for name, value in zip(names, shown))})",
        *ending(holds.format("experiment", "expected"), holds.format("control", expected) if acting[1:] else ""),
    ]
    return "\n".join(lines)


def _due(acting: SceneWriter, wording: Wording) -> str:
    entries = wording.noting.entries(acting.logs.each[-1], acting.logs.sites)
    return quoted(repr(sorted(entries, key=str) if wording.unordered else entries))
