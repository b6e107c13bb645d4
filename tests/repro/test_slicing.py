"""What of a program matters to one of its facts? What may act on it stays, even where the fault shows without it."""

from __future__ import annotations

from itertools import count

import pytest
import torch
from faults.engine import Fault, named, release
from faults.programs.argument_lists import FAULTS

from hookcheck.contract.ledger import Ledger
from hookcheck.contract.verdict import PROGRAM as PROGRAM_FAMILY
from hookcheck.contract.verdict import RAN
from hookcheck.programs.program import WHOLE
from hookcheck.programs.running import examine_program
from hookcheck.repro.inlining import inlined, plainer
from hookcheck.repro.program import RACE, program_script, varying
from hookcheck.repro.said import failing
from hookcheck.repro.slicing import sliced
from hookcheck.repro.turns import fewer_turns, flat, one_turn, two_turns
from hookcheck.repro.unstated import past

from .cases import PROGRAMS, SCRIPTED, executed
from .test_agreement import RECORD, record
from .test_causes import with_controls

PROGRAM = """
def noting(log, word):
    return lambda *arguments: log.append(word)


def other(check):
    check.true("another matter", True)


def judge(check):
    log, seen = [], []
    net, aside = nn.Linear(1, 1), nn.Linear(1, 1)
    aside.register_forward_hook(noting(seen, "aside"))
    aside(torch.ones(1, 1))
    check.equal("calls aside", seen, ["aside"])
    net.register_forward_hook(noting(log, "hook"))
    handle = nn.modules.module.register_module_forward_hook(noting(seen, "global"))
    y = net(torch.ones(1, 1))
    check.works("backward", y.sum().backward)
    other(check)
    check.equal("calls", log, ["hook"])
    handle.remove()
    check.equal("calls at last", log, ["hook"])
"""


def test_what_may_act_on_a_fact_stays() -> None:
    text = sliced(PROGRAM.strip("\n"), "calls")
    assert text is not None
    assert 'net.register_forward_hook(noting(log, "hook"))' in text
    assert "y = net(torch.ones(1, 1))" in text
    assert 'check.works("backward", y.sum().backward)' in text  # what a hook on the way might note


def test_what_acts_on_all_modules_stays() -> None:
    text = sliced(PROGRAM.strip("\n"), "calls")
    assert text is not None
    assert "register_module_forward_hook" in text


def test_what_comes_after_it_and_other_facts_go() -> None:
    text = sliced(PROGRAM.strip("\n"), "calls aside")
    assert text is not None
    assert "y = net" not in text
    assert "other" not in text
    assert text.endswith('check.equal("calls aside", seen, ["aside"])')


def test_what_states_others_of_its_own_goes() -> None:
    text = sliced(PROGRAM.strip("\n"), "calls")
    assert text is not None
    assert "other" not in text


def test_what_acts_on_all_modules_while_it_states_others_stays() -> None:
    text = PROGRAM.replace('check.true("another', 'register_module_forward_hook(f)\n    check.true("another')
    assert "other(check)" in (sliced(text.strip("\n"), "calls") or "")


def test_what_is_stated_beside_a_fact_stays_if_it_needs_nothing_more() -> None:
    text = sliced(PROGRAM.strip("\n"), "calls at last", "calls")
    assert text is not None
    assert 'check.equal("calls", log, ["hook"])' in text
    text = "def judge(check):\n    a = f()\n    b = g()\n    check.equal('b', b, 1)\n    check.equal('a', a, 2)"
    assert sliced(text, "a", "b") == "def judge(check):\n    a = f()\n    check.equal('a', a, 2)"
    assert sliced(text, "a", "b", needed=True) == text


def test_a_fact_that_is_a_condition_stands_by_itself() -> None:
    text = "def judge(check):\n    x = f()\n    if check.works('a', x) is not None:\n        check.equal('n', x.n, 3)"
    assert sliced(text, "a") == 'def judge(check):\n    x = f()\n    check.works("a", x)'
    assert sliced(text, "n") == text


def test_what_closes_what_ends_with_the_process_goes() -> None:
    text = (
        "def judge(check):\n    try:\n        check.true('a', f())\n    finally:\n        dist.destroy_process_group()"
    )
    assert sliced(text, "a") == "def judge(check):\n    check.true('a', f())"


def test_what_registers_a_hook_stays_whoever_reads_its_handle() -> None:
    text = "handle = x.register_hook(f)\ncheck.true('a', g(x))"
    assert sliced(f"later = lambda: x.register_hook(f)\n{text}", "a") == text


def test_a_fact_that_is_not_stated() -> None:
    assert sliced(PROGRAM, "no such fact") is None


def test_what_a_lambda_calls_its_own_is_not_what_others_call_so() -> None:
    other = "    for x in a:\n        f(lambda y: g(x, y))\n"
    judge = "def judge(check):\n{}    y = k(lambda x: 2 * x)\n    check.true('fact', y)"
    assert sliced(judge.format(other), "fact") == judge.format("")
    used = other.replace("lambda y: g(x, y)", "lambda z: y")  # it is called after that
    assert sliced(judge.format(used), "fact") == judge.format(used)


@pytest.mark.parametrize(
    ("ahead", "left"),
    [
        ('check.true("other", a)', ""),
        ('for n in (1, 2):\n        check.true("other", n)', ""),
        ('with f():\n        check.true("other", a)', "    with f():\n        pass\n"),
        ('check.true("other", f())', "    f()\n"),
    ],
)
def test_a_fact_that_is_in_the_way_is_not_stated(ahead: str, left: str) -> None:
    text = f'def judge(check):\n    {ahead}\n    check.true("fact", a)'
    changed = past(text, "fact", lambda of: (1, "other: expected 1, observed 2" if '"other"' in of else ""), failing)
    assert changed == f'def judge(check):\n{left}    check.true("fact", a)'


def test_what_need_not_work_ahead_of_a_fact_gives_nothing_where_it_does_not() -> None:
    text = 'def judge(check):\n    a = check.works("other", f)\n    check.true("fact", a)'
    instead = "    a = None\n    with suppress(Exception):\n        a = f()\n"
    changed = past(text, "fact", lambda of: (1 if "suppress" in of else None, ""), failing)
    assert changed == f'def judge(check):\n{instead}    check.true("fact", a)'


def test_a_value_that_was_made_with_another_is_followed() -> None:
    text = "def judge(check):\n    x = leaf(1.0)\n    y = 2 * x\n    y.backward()\n    check.equal('g', x.grad, [2])"
    assert sliced(text, "g") == text


def test_an_act_that_is_handed_on_is_no_mere_reading() -> None:
    text = "def judge(check):\n    x = leaf()\n    check.works('b', x.sum().backward)\n    check.equal('g', x.grad, 1)"
    assert sliced(text, "g") == text


LOOP = "def judge(check):\n    for n, of in ((1, f), (2, g)):\n        check.equal(f'fact {n}', of(n), 3)"


def test_the_turn_that_shows_it() -> None:
    text = one_turn(LOOP, "fact 2", lambda candidate: "(2, g)" in candidate)
    assert text == "def judge(check):\n    n, of = 2, g\n    check.equal(f'fact {n}', of(n), 3)"
    assert flat(text, "judge") == "n, of = 2, g\ncheck.equal(f'fact {n}', of(n), 3)"


def test_a_turn_that_passes_beside_the_one_that_shows_it() -> None:
    (text,) = two_turns(LOOP, "fact 2", lambda candidate: "in ((2, g),)" in candidate)
    assert "for n, of in ((1, f), (2, g)):" in text


def test_a_turn_beside_another_of_what_only_a_run_can_tell() -> None:
    text = "def judge(check):\n    for n in names():\n        check.equal(f'fact {n}', n, 3)"
    said = "the turn is 1\nthe turn is 2\nthe turn is 3\n"
    texts = [*two_turns(text, "fact 3", lambda candidate: True, lambda candidate: said)]
    assert [text.split("\n")[1] for text in texts] == ["    for n in (2, 3):", "    for n in (1, 3):"]
    assert not [*two_turns(text, "fact 3", lambda candidate: True, lambda candidate: "the turn is <f>\n")]


@pytest.mark.parametrize("turn", ["(1, [2])", "2.5", "{'a': 1}"])
def test_what_torch_gave_is_not_written_out(turn: str) -> None:
    text = "def judge(check):\n    for n in run():\n        check.equal(f'fact {n}', n, 3)"
    said = f"the turn is {turn}\n"
    assert one_turn(text, "fact 2", lambda candidate: "run()" not in candidate, lambda candidate: said) == text
    assert not [*two_turns(text, "fact 2", lambda candidate: True, lambda candidate: said + said)]


def test_the_turn_of_a_loop_whose_fact_is_in_a_function_that_it_calls() -> None:
    text = "def states(check, n):\n    check.equal(f'fact {n}', n, 3)\n\n\n"
    text += "def judge(check):\n    for n in names():\n        states(check, n)"
    said = "the turn is 1\nthe turn is 2\n"
    assert "\n    n = 2\n" in one_turn(
        text, "fact 2", lambda candidate: "names" not in candidate, lambda candidate: said
    )
    (beside,) = two_turns(text, "fact 2", lambda candidate: True, lambda candidate: said)
    assert "for n in (1, 2):" in beside


def test_the_turn_of_a_dict_that_takes_from_another() -> None:
    text = "ALL = {'a': f, **MORE}\n\n\ndef judge(check):\n    for n, of in ALL.items():\n"
    text += "        check.equal(f'fact {n}', of(), 3)"
    assert '\n    n, of = "a", f\n' in one_turn(text, "fact a", lambda candidate: "in ((" in candidate)
    assert "for n, of in (*dict(MORE).items(),):" in one_turn(text, "fact b", lambda candidate: "in (*" in candidate)


def test_the_turn_of_a_key() -> None:
    text = "ALL = {'a': 1, 'b': 2}\n\n\ndef judge(check):\n    for n in ALL:\n        check.equal(f'fact {n}', n, 3)"
    assert '\n    n = "b"\n' in one_turn(text, "fact b", lambda candidate: '("b",)' in candidate)


def test_a_loop_that_states_nothing_has_fewer_turns() -> None:
    text = "PUT = {'a': 1, 'b': 2}\nfor n, of in PUT.items():\n    f(n)\nfor n in g():\n    f(n)"
    head = "PUT = {'a': 1, 'b': 2}\nfor n, of in "
    assert [each.split(":\n")[0] for each in fewer_turns(text)] == [f'{head}(("b", 2),)', f'{head}(("a", 1),)']


ROWS = """
def judge(check):
    rows = {"a": (f, (1, 2)), "b": (g, (3, 4))}
    for n, (of, pair) in rows.items():
        given = check.works(f"fact {n}", of)
        if given is not None:
            check.equal(f"of {n}", given, pair)
""".strip("\n")


def test_what_a_fact_gives_is_not_asked_for_where_it_is_all_that_is_stated() -> None:
    text = sliced(ROWS, "fact b")
    assert text is not None
    assert "if given" not in text


def test_the_turn_of_what_a_function_lists() -> None:
    shortest = sliced(ROWS, "fact b") or ""
    text = one_turn(shortest, "fact b", lambda candidate: '("b", (g' in candidate or '"b", g,' in candidate)
    assert 'n, of, pair = "b", g, (3, 4)\n' in text
    assert "rows" not in text


def test_keywords_that_no_call_gives() -> None:
    text = """
def made(f, **parts):
    m = f()
    for name, part in parts.items():
        m[name] = part
    return m


x = made(g""".lstrip("\n")
    assert plainer(f"{text})") == "def made(f):\n    return f()\n\n\nx = made(g)"
    assert plainer(f"{text}, a=1)") == f"{text}, a=1)"


def test_all_turns_stay_where_one_alone_does_not_show_it() -> None:
    assert one_turn(LOOP, "fact 2", lambda candidate: False) == LOOP


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ('note(log, "a")', 'lambda *args: log.append("a")'),
        ("note(log.items, 'a')", 'lambda *args: log.items.append("a")'),
        ("note(made(), 'a')", None),  # it would be made at each call
        ("note(log.items.first, 'a')", None),
        ("take(note)", None),
    ],
)
def test_a_call_gives_way_to_what_it_returns(call: str, result: str | None) -> None:
    text = f"def note(log, word):\n    return lambda *args: log.append(word)\n\n\nlog = []\nhook = {call}"
    assert inlined(text).strip() == (text if result is None else f"log = []\nhook = {result}")


@pytest.mark.parametrize(
    ("call", "stays"),
    [("f()", False), ("[f() for b in c]", False), ("[f() for a in c]", True), ("h(lambda a: f())", True)],
)
def test_a_name_in_a_function_is_not_another_one_of_that_name(call: str, stays: bool) -> None:
    text = f"def f():\n    return g(a)\n\n\na = 1\nb = {call}"
    assert ("def f" in inlined(text)) is stays


@pytest.mark.parametrize(("calls", "stays"), [(1, False), (2, True)])
def test_what_is_wide_is_shared_by_several_calls(calls: int, stays: bool) -> None:
    function = f"def f():\n    return g({', '.join('a' * 20 for _ in range(4))})"
    text = f"{function}\n\n\n" + "\n".join(["h(f())"] * calls)
    assert ("def f" in inlined(text)) is stays
    assert "def f" not in inlined(text.replace("a" * 20, "a"))


def test_keywords_that_no_call_gives_are_handed_on_nowhere() -> None:
    text = "def made(f, **more):\n    return f(a=1, **{'b': 2, **more}, **more)\n\n\nx = made(g"
    assert plainer(f"{text})") == 'def made(f):\n    return f(a=1, **{"b": 2})\n\n\nx = made(g)'
    assert plainer(f"{text}, a=1)") == f"{text}, a=1)"


def test_a_parameter_that_is_named_as_a_function_is_not_one() -> None:
    text = "def f():\n    return g(1)\n\n\ndef h(f):\n    k(f)\n    return f\n\n\nh(f())"
    assert inlined(text) == "\n\ndef h(f):\n    k(f)\n    return f\n\n\nh(g(1))"
    given_again = text.replace("h(f())", "f = h(f())")
    assert inlined(given_again) == given_again


def deviating() -> list[str]:
    """The programs that run in this process and deviate in the record of this torch, but for those of which
    `test_causes` makes a script with a control; without a record all."""
    quick = [program.id for program in SCRIPTED if not program.alone and program.id not in with_controls()]
    if not RECORD.exists():
        return quick
    clauses = {d.clause for group in record().alike for d in group.deviations if group.family == PROGRAM_FAMILY}
    return [id for id in quick if id in clauses]


SLOW = (pytest.mark.slow, pytest.mark.one_in(8))


@pytest.mark.parametrize(
    "id", [pytest.param(id, marks=() if i % 84 == 0 else SLOW) for i, id in enumerate(deviating())]
)
def test_a_deviating_program_has_a_short_script(id: str) -> None:
    result = examine_program(PROGRAMS[id], Ledger(()), "cpu")
    if result.outcome != RAN or not result.deviations:
        pytest.skip("it conforms here, or does not run")
    fact = result.deviations[0].subject
    tries = RACE if varying(PROGRAMS[id]) else 1
    drafts = (program_script(PROGRAMS[id], None, fact, executed) for _ in range(tries))
    text = min(drafts, key=lambda draft: draft.count("\n"))  # what a race hides cannot be cut
    runs = (executed(text) for _ in range(tries))
    code, words = next((run for run in runs if run[0]), (0, ""))
    assert code == 1
    assert words.strip().split("\n")[-1].startswith((fact, *varying(PROGRAMS[id]))) or fact == WHOLE
    lines = text.rstrip("\n").split("\n")
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 100


@pytest.mark.slow
@pytest.mark.parametrize(
    ("id", "fact", "since", "control"),
    [
        (
            "HO-01",
            "deepcopy of symbolic_trace: register_forward_hook on the root",
            "1.8",
            "deepcopy of symbolic_trace: register_forward_hook on 0: expected ",
        ),
        ("AL-01", "grad of a, with a leaf that is asked for", "2.0", "by backward: expected "),
    ],
)
def test_a_fact_of_many_turns_has_a_short_script(id: str, fact: str, since: str, control: str) -> None:
    if release(torch.__version__) < release(since):
        pytest.skip("it is not offered")
    text = program_script(PROGRAMS[id], None, fact, executed)
    words = executed(text)[1].strip().split("\n")
    assert words[0].startswith(control or fact)
    assert words[-1].startswith(f"{fact}: ")
    assert text.count("\n") <= 60


@pytest.mark.slow
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.clauses == ("AL-08",)][1:3], ids=named)
def test_what_is_listed_by_two_loops_has_a_short_script(fault: Fault) -> None:
    with fault.patch():
        fact = examine_program(PROGRAMS["AL-08"], Ledger(()), "cpu").deviations[0].subject
        text = program_script(PROGRAMS["AL-08"], None, fact, executed)
        assert executed(text)[0] == 1
    assert executed(text)[0] == 0
    assert text.count("\n") <= 60


def test_a_fact_that_shows_now_and_then_has_as_short_a_script(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = count()

    def now_and_then(script: str) -> tuple[int | None, str]:
        return executed(script) if next(runs) % 3 == 2 else (0, "")

    program = PROGRAMS["CK-14"]
    fact = examine_program(program, Ledger(()), "cpu").deviations[0].subject
    always = program_script(program, None, fact, executed)
    monkeypatch.setattr("hookcheck.repro.program.varying", lambda program: {"fact"})
    assert program_script(program, None, fact, now_and_then) == always
