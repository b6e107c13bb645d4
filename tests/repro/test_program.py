"""Does the script of a program say what the program says? And what do scripts need besides torch: nothing."""

from __future__ import annotations

import ast
import json
import sys
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from hookcheck.cli import main
from hookcheck.contract.ledger import Ledger
from hookcheck.contract.verdict import RAN
from hookcheck.errors import HookcheckError
from hookcheck.oracle.tolerance import STATED
from hookcheck.programs.check import Check, NotOffered, NotRun
from hookcheck.programs.program import Program
from hookcheck.programs.running import examine_program, facts_of
from hookcheck.repro.alone import alone
from hookcheck.repro.program import GIVEN, program_script

from .cases import PROGRAMS, executed

QUICK = [
    p.id for p in PROGRAMS.values() if not p.alone and not p.chapter.startswith(("torch-compile", "threads", "tracing"))
]
"""The programs that run in this process, and at once."""


def test_few_have_no_script() -> None:
    refused = {}
    for program in PROGRAMS.values():
        try:
            program_script(program)
        except HookcheckError as error:
            refused[program.id] = str(error)
    assert {PROGRAMS[id].chapter for id in refused} <= {"tracing", "interactions"}
    for id, words in refused.items():
        assert words == f"no script can be written yet for program {id}: it needs more than torch"


@pytest.mark.parametrize("id", PROGRAMS)
def test_stands_alone(id: str) -> None:
    try:
        text = program_script(PROGRAMS[id])
    except HookcheckError:
        pytest.skip("see test_few_have_no_script")
    tree = ast.parse(text)
    compile(tree, id, "exec")
    assert "hookcheck" not in text
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert name.partition(".")[0] in {"torch", "__future__", *_standard_library()}
    assert "\n\n\n\n" not in text
    assert all(line == line.rstrip() for line in text.split("\n"))


def _standard_library() -> frozenset[str]:
    names: Any = getattr(sys, "stdlib_module_names", None)  # since Python 3.10
    return frozenset(names or sys.modules)


@pytest.mark.parametrize("id", QUICK[::13])
def test_says_what_the_program_says(id: str) -> None:
    program = PROGRAMS[id]
    about = "cuda" if program.device == "cuda" else "cpu"
    result = examine_program(program, Ledger(()), about if torch.cuda.is_available() else "cpu")
    code, words = executed(program_script(program))
    assert code == (2 if result.outcome != RAN else int(bool(result.deviations))), words
    told = [line for line in words.split("\n")[1:] if ": expected " in line] if code == 1 else []
    assert len(told) == len(result.deviations)
    for line, deviation in zip(told, result.deviations):
        assert line.startswith(f"{deviation.subject}: expected {deviation.expected}, observed ")
    if code == 0:
        assert f"all {result.judged[id]} facts are so" in words


@lru_cache(maxsize=1)
def prelude() -> dict[str, Any]:
    """What scripts define before the program."""
    text = program_script(PROGRAMS[QUICK[0]])
    names: dict[str, Any] = {"math": __import__("math"), "warnings": warnings}
    classes: list[ast.stmt] = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    exec(compile(ast.Module(classes, []), "prelude", "exec"), names)
    return names


class Odd(tuple[Any, ...]):
    """A tuple of a type of its own."""


NAN, INFINITY = float("nan"), float("inf")
SIDES: list[Any] = [
    None, True, False, 0, 1, 1.0, 1 + STATED / 2, 1 + 3 * STATED, STATED / 2, 3 * STATED, NAN, INFINITY, -INFINITY,
    "a", "b", (), [], {}, (1.0,), [1.0], [1.0, None], (1.0, (2.0,)), Odd((1.0,)), {"k": 1.0}, {"k": 1.0 + STATED / 2},
    {"j": 1.0}, torch.tensor(1.0), torch.tensor([1.0]), torch.tensor([1]), (torch.tensor([1.0]),),
    {"k": torch.tensor(1.0)}, torch.tensor([NAN]), 1j,
]  # fmt: skip
"""What may stand on either side of a fact."""


def _fail(error: BaseException) -> Callable[[], Any]:
    def act() -> Any:
        raise error

    return act


def _warn() -> str:
    warnings.warn("beware of it", stacklevel=1)
    return "result"


ACTS: dict[str, Callable[[], Any]] = {
    "quiet": lambda: "result",
    "value": _fail(ValueError("no such value")),
    "empty": _fail(KeyError()),
    "lines": _fail(RuntimeError("one\ntwo")),
    "warns": _warn,
}
"""What a program may have done."""


def stated(state: Callable[[Any], Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """What the real `Check` says, what that of scripts says, and what both give."""
    real, script = Check(), prelude()["Check"]("cpu")
    given = [state(real), state(script)]
    wrong = [(fact.name, *fact.finding.words()) for fact in real.facts if fact.finding]
    assert script.count == len(real.facts)
    return (
        [f"{name}: expected {expected}, observed {observed}." for name, expected, observed in wrong],
        script.wrong,
        given,
    )


@pytest.mark.parametrize("method", ["equal", "true", "calls", "order"])
def test_check_judges_alike(method: str) -> None:
    sides: dict[str, list[tuple[Any, ...]]] = {
        "equal": [(a, b) for a in SIDES for b in SIDES],
        "true": [(True,), (False,), (0,), (1,)],
        "calls": [(0, 0), (0, 1), (2, 1)],
        "order": [(a, b) for a in ([], ["a"], ["a", "b"], ["b", "a"]) for b in ([], ["a"], ["a", "b"])],
    }
    seen = set()
    for side in sides[method]:
        real, script, _ = stated(lambda check, side=side: getattr(check, method)("fact", *side))  # type: ignore[misc]
        assert real == script, side
        seen.add(bool(real))
    assert seen == {True, False}


@pytest.mark.filterwarnings("ignore:beware of it")
@pytest.mark.parametrize("act", ACTS)
def test_check_judges_acts_alike(act: str) -> None:
    def run(state: Callable[[Any], Any]) -> None:
        real, script, given = stated(state)
        assert real == script
        assert given[0] == given[1]

    for error, says in ((ValueError, ""), (ValueError, "such"), (ValueError, "other"), (Exception, ""), (KeyError, "")):
        run(lambda check, error=error, says=says: check.raises("fact", error, ACTS[act], says))  # type: ignore[misc]
    run(lambda check: check.works("fact", ACTS[act]))
    if act in ("quiet", "warns"):
        for category, says in ((UserWarning, ""), (UserWarning, "beware"), (UserWarning, "no"), (FutureWarning, "")):
            run(lambda check, c=category, says=says: check.warns("fact", c, ACTS[act], says))  # type: ignore[misc]
            run(lambda check, says=says: check.silent("fact", ACTS[act], says))  # type: ignore[misc]


def test_check_has_every_method() -> None:
    methods = {name for name in vars(Check) if not name.startswith("_")} - {"device"}
    assert methods <= set(vars(prelude()["Check"]))


def test_check_lets_what_ends_the_process_through() -> None:
    for check in (Check(), prelude()["Check"]("cpu")):
        with pytest.raises(KeyboardInterrupt):
            check.raises("fact", ValueError, _fail(KeyboardInterrupt()))


def _program(act: Callable[..., Any]) -> Program:
    return Program("XX-1", "promise", "It holds.", "1.7", "docs", ("own",), PROGRAMS[QUICK[0]].subject, act)


def lacking(check: Check) -> None:
    """It needs what is not there."""
    raise NotOffered("no such hook") if check.device == "cpu" else NotRun("no such thing")


def failing(check: Check) -> None:
    """It ends early."""
    check.true("one", True)
    check.true("two", False)
    raise ValueError("no\nmore")


@pytest.mark.parametrize(
    ("act", "code", "words"),
    [
        (lacking, 2, "This cannot be run here: no such hook.\n"),
        (
            failing,
            1,
            "The fault shows.\ntwo: expected True, observed False.\n"
            "program: expected the program ends, observed ValueError: no.",
        ),
    ],
)
def test_exit_codes(act: Callable[..., Any], code: int, words: str) -> None:
    assert executed(program_script(_program(act))) == (code, words)


def test_a_torch_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    text = program_script(next(p for p in PROGRAMS.values() if p.since == "2.0"))
    monkeypatch.setattr(torch, "__version__", "1.13.1+cpu")
    assert executed(text) == (2, "This torch lacks what this is about (since 2.0).\n")


def test_devices() -> None:
    about = next(p for p in PROGRAMS.values() if p.device == "cuda")
    assert 'check = Check("cuda")' in program_script(about)
    with pytest.raises(HookcheckError, match=f"program {about.id} is about cuda; add --device cuda"):
        program_script(about, "cpu")
    assert 'with torch.device("cuda"):' in program_script(PROGRAMS[QUICK[0]], "cuda")


def test_on_the_command_line() -> None:
    id = QUICK[0]
    assert asked(id) == (0, program_script(PROGRAMS[id]))
    code, out = asked(id, "--clause", id, "--format", "json")
    assert (code, json.loads(out)) == (
        0,
        {"clause": id, "chapter": PROGRAMS[id].chapter, "device": "cpu", "script": program_script(PROGRAMS[id])},
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((QUICK[0], "--clause", "GI-01"), "is itself the clause, a program: leave --clause and --kind out"),
        ((QUICK[0], "--kind", "backward"), "is itself the clause, a program: leave --clause and --kind out"),
        (("GI-01",), "GI-01 is a clause on networks: give a topology, with --clause GI-01 and --kind"),
        (("ffff",), "'ffff' is no program; for a topology give --clause and --kind"),
        (
            ("ffff", "--clause", QUICK[0], "--kind", "backward"),
            f"which runs on no topology: hookcheck repro {QUICK[0]}",
        ),
    ],
)
def test_wrong_usage_is_one_line(arguments: tuple[str, ...], words: str) -> None:
    code, out = asked(*arguments)
    assert code == 2
    assert out.startswith("hookcheck: error: ")
    assert out.count("\n") == 1
    assert words in out


def asked(*arguments: str) -> tuple[int, str]:
    """Exit code and text of ``hookcheck repro``."""
    done = CliRunner().invoke(main, ["repro", *arguments])
    return done.exit_code, done.output


told = "what `facts_of` needs has this name too"


def torn() -> Any:
    """It needs two things of one name."""
    return facts_of, told


def test_refuses_what_cannot_stand_alone() -> None:
    with pytest.raises(ValueError, match="told is another thing"):
        alone("repro.test_program", "torn", GIVEN)
