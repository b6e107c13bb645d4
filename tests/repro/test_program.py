"""Does the script of a program say what the program says?"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hookcheck.contract.ledger import Ledger
from hookcheck.contract.verdict import RAN
from hookcheck.errors import HookcheckError
from hookcheck.programs import check as checks
from hookcheck.programs.check import Check, NotOffered, NotRun
from hookcheck.programs.facts import facts_of
from hookcheck.programs.program import ALONE_HANG_LIMIT, ALONE_LIMIT, WHOLE, Program
from hookcheck.programs.running import examine_program
from hookcheck.repro.alone import alone
from hookcheck.repro.bare import bare
from hookcheck.repro.contrast import STATES
from hookcheck.repro.editing import source
from hookcheck.repro.heading import FAILS
from hookcheck.repro.issue import _other_codes
from hookcheck.repro.program import GIVEN, program_script, varying
from hookcheck.repro.said import OBSERVED, amount, facts, may_hide
from hookcheck.repro.writing import (
    FAILURE,
    NESTED,
    OF_PLAIN,
    PLAIN,
    RAISED,
    SILENT,
    TENSOR,
    WARNS,
    stated,
    without_guards,
)

from .cases import PROGRAMS, SCRIPTED, executed

QUICK = [p.id for p in SCRIPTED if not p.alone and not p.chapter.startswith(("torch-compile", "threads", "tracing"))]
"""The programs that run in this process, and at once."""


SLOW = (pytest.mark.slow, pytest.mark.one_in(4))


@pytest.mark.parametrize("id", [pytest.param(id, marks=() if i % 26 == 0 else SLOW) for i, id in enumerate(QUICK)])
def test_says_what_the_program_says(id: str) -> None:
    program = PROGRAMS[id]
    about = "cuda" if program.device == "cuda" else "cpu"
    result = examine_program(program, Ledger(()), about if torch.cuda.is_available() else "cpu")
    code, words = executed(program_script(program))
    assert code == (3 if result.outcome != RAN else int(bool(result.deviations))), words
    last = words.strip().split("\n")[-1]  # it ends with the first that is not so, or as a call raises
    assert (
        code != 1
        or OBSERVED not in last
        or last.partition(STATES)[0] in {result.deviations[0].subject, *varying(program)}
    )


FACTS: dict[str, Callable[[Check], None]] = {
    "equal": lambda check: check.equal("fact", torch.tensor([1.0, 2.0]), [1.0, 2.0]),
    "within rounding": lambda check: check.equal("fact", (torch.tensor(1.0) + 1e-7, {"k": 2.0}), (1.0, {"k": 2.0})),
    "unequal": lambda check: check.equal("fact", torch.tensor([1.0, 2.0]), [1.0, 2.5]),
    "a list for a tuple": lambda check: check.equal("fact", [1.0], (1.0,)),
    "true": lambda check: check.true("fact", True),
    "untrue": lambda check: check.true("fact", False),
    "calls": lambda check: check.calls("fact", 1, 2),
    "order": lambda check: check.order("fact", ("a", "b"), ["a", "b"]),
    "another order": lambda check: check.order("fact", ["b", "a"], ["a", "b"]),
    "raises and says": lambda check: check.raises("fact", ZeroDivisionError, lambda: 1 / 0, "division"),
    "says another thing": lambda check: check.raises("fact", ZeroDivisionError, lambda: 1 / 0, "no such word"),
    "raises nothing": lambda check: check.raises("fact", ValueError, lambda: 1, "any"),
    "works": lambda check: check.works("fact", lambda: 1),
    "works not": lambda check: check.works("fact", lambda: 1 / 0),
    "warns": lambda check: check.warns("fact", UserWarning, lambda: warnings.warn("beware", stacklevel=1), "beware"),
    "warns of nothing": lambda check: check.warns("fact", UserWarning, lambda: 1),
    "silent": lambda check: check.silent("fact", lambda: 1),
    "not silent": lambda check: check.silent("fact", lambda: warnings.warn("beware", stacklevel=1)),
}
"""What programs state, some of it wrong."""


@pytest.mark.parametrize("name", FACTS)
def test_a_fact_is_judged_alike(name: str) -> None:
    real = Check()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        FACTS[name](real)
    lines = Path(__file__).read_text(encoding="utf-8").split("\n")
    (line,) = (line for line in lines if line.startswith(f'    "{name}": lambda check: '))
    body = line.partition("lambda check: ")[2].rstrip(",")
    text = stated(f"def program(check):\n    {body}")
    names: dict[str, Any] = {"torch": torch, "warnings": warnings}
    exec("\n\n".join([PLAIN, OF_PLAIN, RAISED, WARNS, SILENT, text]), names)
    wrong = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            names["program"]()
        except (SystemExit, ZeroDivisionError):
            wrong = True
    assert wrong is any(fact.finding for fact in real.facts)


def test_bare_source_has_what_is_empty_without_types() -> None:
    text = "def f():\n    return list[Any](), dict[str, list[Any]](), set[int]().union(list[int](x), g[0]())"
    assert bare(text) == "def f():\n    return [], {}, set().union(list(x), g[0]())"


def test_bare_source_keeps_its_comments() -> None:
    text = 'def f(a: int, *b: Any, c: str = "") -> None:\n    """Words."""\n\n    x: int = a  # why\n    return x'
    assert bare(text) == 'def f(a, *b, c=""):\n    x = a  # why\n    return x'


def test_fields_keep_what_makes_them_fields() -> None:
    text = "@dataclass\nclass Host:\n    make: object\n    since: object = 1"
    assert bare(text) == text


def test_what_fails_is_told_on_one_line() -> None:
    text = stated('def act(check):\n    check.works("fact", act)', "fact")
    assert text == 'def act():\n    check("fact", failure(act), None)'
    names: dict[str, Any] = {}
    exec(FAILURE, names)
    assert names["failure"](lambda: exec("raise ValueError('no\\nmore')")) == "ValueError: no"
    assert names["failure"](lambda: 1) is None


def test_what_is_called_is_all_of_what_is_chosen() -> None:
    assert stated('def act(check):\n    check.works("fact", f if c else g)') == "def act():\n    (f if c else g)()"


def test_where_a_fact_is_that_something_works_others_that_do_are_said_too() -> None:
    text = 'def act(check):\n    check.works("one", f)\n    y = check.works("two", g)\n    check.works("three", h)'
    assert stated(text) == "def act():\n    f()\n    y = g()\n    h()"
    text = stated(text, "three")
    assert text == 'def act():\n    check("one", failure(f), None)\n    y = g()\n    check("three", failure(h), None)'


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


def ending(check: Check) -> None:
    """It ends with an exception."""
    check.true("one", True)
    raise ValueError("no")


@pytest.mark.parametrize(
    ("act", "code", "words"),
    [
        (lacking, 3, ""),
        (failing, 1, "one: expected True, observed True\ntwo: expected True, observed False\n"),
    ],
)
def test_exit_codes(act: Callable[..., Any], code: int, words: str) -> None:
    assert executed(program_script(_program(act))) == (code, words)


def controlled(check: Check) -> None:
    """One of two is not so."""
    calls: list[str] = ["a"]
    check.equal("one before", calls, ["a"])
    calls.append("a")
    check.equal("two after", calls, ["a", "b"])


def empty_before(check: Check) -> None:
    """One of two is not so, and that the other one is proves nothing."""
    calls: list[str] = []
    check.equal("none before", calls, [])
    calls.append("a")
    check.equal("one after", calls, ["b"])


def stated_together(check: Check) -> None:
    """Three of four facts are not so, and two calls state them, each one of both kinds."""

    def state(name: str, value: int) -> None:
        check.equal(f"{name} before", value, 1)
        check.equal(f"{name} after", value + 1, 3)

    state("a", 1)
    state("b", 3)


def in_turns(check: Check) -> None:
    """One of four turns is not so."""
    for name, value in (("a", 1), ("b", 1), ("c", 2), ("d", 1)):
        check.equal(f"turn {name}", value, 1)


@pytest.mark.parametrize(
    ("act", "fact", "words"),
    [
        (
            controlled,
            "two after",
            "one before: expected ['a'], observed ['a']\ntwo after: expected ['a', 'b'], observed ['a', 'a']\n",
        ),
        (empty_before, "one after", "one after: expected ['b'], observed ['a']\n"),
        (in_turns, "turn c", "turn b: expected 1, observed 1\nturn c: expected 1, observed 2\n"),
        (
            stated_together,
            "b after",
            "a before: expected 1, observed 1\na after: expected 3, observed 2\n"
            "b before: expected 1, observed 3\nb after: expected 3, observed 4\n",
        ),
        (failing, "two", "one: expected True, observed True\ntwo: expected True, observed False\n"),
    ],
)
def test_a_fact_has_a_control(act: Callable[..., Any], fact: str, words: str) -> None:
    assert executed(program_script(_program(act), None, fact, executed)) == (1, words)


def test_what_ends_otherwise_is_shown_as_a_whole() -> None:
    text = program_script(_program(ending), None, WHOLE, executed)
    assert executed(text) == (1, "one: expected True, observed True\nValueError: no\n")


def test_a_control_that_fails_shows_no_fault() -> None:
    text = program_script(_program(failing), None, "two", executed)
    assert executed(text)[0] == 1
    assert 'check("one", bool(True), True)' in text
    assert executed(text.replace("bool(True)", "False"))[0] == FAILS
    for code in ('2 if name == "one" else 1', '\n    1 if name == "two" else 2\n'):
        assert _other_codes(f"raise SystemExit({code})") == ", 2 where its control fails"


def test_a_program_whose_facts_vary_is_about_the_one_that_fails() -> None:
    text = program_script(_program(failing), None, WHOLE, executed)
    assert "try:" not in text
    assert executed(text)[1].endswith("two: expected True, observed False\n")


@pytest.mark.parametrize(
    ("expected", "observed", "plain", "hides"),
    [
        ("[((None,), ([3],))]", "[]", "", True),  # a sound torch gives tensors there
        ("[((None,), ([3],))]", "[]", TENSOR, True),
        ("[((None,), ([3],))]", "[]", NESTED, False),
        ("[3]", "None", TENSOR, False),
        ("{'a': [3]}", "{}", NESTED, True),
        ("[3]", "[2]", "", False),
        ("['a', 'b']", "['b']", "", False),
        ("3", "None", "", False),
    ],
)
def test_what_a_sound_torch_may_give_is_made_plain(expected: str, observed: str, plain: str, hides: bool) -> None:
    assert may_hide("check.equal('a', seen, due)", expected, observed, plain) is hides
    assert not may_hide("seen.append(grad.tolist())", expected, observed, plain)


def test_a_torch_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    text = program_script(next(p for p in PROGRAMS.values() if p.since == "2.0"))
    monkeypatch.setattr(torch, "__version__", "1.13.1+cpu")
    assert executed(text)[0] == 3


def test_devices() -> None:
    about = next(p for p in PROGRAMS.values() if p.device == "cuda")
    assert "torch.cuda.is_available()" in program_script(about)
    with pytest.raises(HookcheckError, match=f"program {about.id} is about cuda; add --device cuda"):
        program_script(about, "cpu")
    assert 'with torch.device("cuda"):' in program_script(PROGRAMS[QUICK[0]], "cuda")


text_of = "what `facts_of` needs has this name too"


def torn() -> Any:
    """It needs two things of one name."""
    return facts_of, text_of


def module_wide() -> Any:
    """It needs a module as a whole."""
    return checks.text_of


TABLE = {"a": 1}
TABLE.update(b=2)


def reading_a_table() -> Any:
    """It needs more than the definition of what it reads."""
    return TABLE["b"]


def test_refuses_what_cannot_stand_alone() -> None:
    with pytest.raises(ValueError, match="text_of is another thing"):
        alone("repro.test_program", "torn", GIVEN)
    with pytest.raises(ValueError, match=r"needs all of hookcheck\.programs\.check"):
        alone("repro.test_program", "module_wide", GIVEN)
    with pytest.raises(ValueError, match=r"test_program changes TABLE after its definition"):
        alone("repro.test_program", "reading_a_table", GIVEN)


def test_a_script_counts_the_time_of_its_own_program() -> None:
    """One that waits for the processor does not hang: the limit by the clock is far above that on its own work."""
    alone = next(p for p in SCRIPTED if p.alone)
    text = program_script(alone)
    assert f"timeout={ALONE_HANG_LIMIT}" in text
    assert f"setrlimit(resource.RLIMIT_CPU, ({ALONE_LIMIT}, " in text
    assert text.index("subprocess.run") < text.index("setrlimit") < text.index("def ")


def test_a_part_of_a_text_is_what_python_takes_for_it() -> None:
    text = 'def f(check):\n    check.equal("ä", [\n        1,\n        "ü",\n    ], lambda: (2))\n'
    parts = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.expr)]
    assert len(parts) > 6
    assert [source(text, part) for part in parts] == [ast.get_source_segment(text, part) for part in parts]


@pytest.mark.parametrize(
    ("text", "left", "since"),
    [
        ("if tuple(map(int, torch.__version__.split('.')[:2])) < (2, 7):\n    raise SystemExit(3)\nf()", "f()", "2.7"),
        ("if not tuple(map(int, torch.__version__.split('.'))) >= (1, 9):\n    raise SystemExit(3)\nf()", "f()", "2.1"),
        (
            "with c:\n    if tuple(torch.__version__) < (2, 7):\n        raise SystemExit(3)\n    f()",
            "with c:\n    f()",
            "2.7",
        ),
        ("if a:\n    if tuple(torch.__version__) < (2, 7):\n        raise SystemExit(3)\n    f()", "", "2.1"),
        ("if tuple(torch.__version__) < (2, 7):\n    f()", "", "2.1"),
    ],
)
def test_a_release_that_is_needed_in_any_case_is_asked_for_at_the_top(text: str, left: str, since: str) -> None:
    assert without_guards(text, "2.1") == (left or text, since)


@pytest.mark.parametrize(
    ("expected", "observed", "how_much"),
    [
        ("[1, 2]", "[]", "nothing"),
        ("3", "None", "nothing"),
        ("[1, 2]", "[1]", "less"),
        ("[1, 2]", "[1, 3]", "not less"),
        ("1", "2", "not less"),
        ("1.0", "0.0", "nothing"),
        ("3.0", "2.5", "less"),
        ("None", "RuntimeError: it raised", ""),
    ],
)
def test_how_much_is_observed(expected: str, observed: str, how_much: str) -> None:
    said = f"ahead{STATES}[]{OBSERVED}[]\nfact{STATES}{expected}{OBSERVED}{observed}\n"
    assert amount(said, "fact") == how_much
    assert amount(said, "another") == ""


def test_what_torch_prints_is_no_fact() -> None:
    said = "ERROR: expected to be in states [2] but current state is 1\nfirst: expected 1, observed 1\n"
    assert facts(said) == ["first"]
