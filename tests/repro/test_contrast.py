"""What is done twice in a script, without a part and with it? And what proves nothing as a control?"""

from __future__ import annotations

import pytest

from hookcheck.repro.contrast import contrasted, ended, moved, vain
from hookcheck.repro.program import program_script

from .cases import PROGRAMS, executed

HOOK = 'net = f()\nhandle = net.register_forward_hook(g)\ny = net(x)\nhandle.remove()\ncheck.equal("output", y, 2)'

WITHOUT_HOOK = """
for hooked in (False, True):
    net = f()
    if hooked:
        handle = net.register_forward_hook(g)
    y = net(x)
    if hooked:
        handle.remove()
    check.equal("output" if hooked else "without a hook", y, 2)
""".strip("\n")


def test_a_hook_is_left_out_and_what_is_done_with_its_handle() -> None:
    assert [*contrasted(HOOK, "output")] == [(WITHOUT_HOOK, "without a hook")]


def test_of_several_hooks_all_are_left_out_or_one() -> None:
    text = 'x.register_hook(f)\ny.register_prehook(g)\ncheck.equal("n", y, 2)'
    assert [name for _, name in contrasted(text, "n")] == [
        "without hooks",
        "without register_hook",
        "without register_prehook",
    ]


def test_a_context_is_not_entered() -> None:
    text = 'def f():\n    pass\n\n\nwith a.b(\n    c\n):\n    # why\n    f()\ncheck.equal("n", y, 2)'
    ((changed, name),) = contrasted(text, "n")
    assert name == "outside of b"
    assert changed == (
        "def f():\n    pass\n\n\nfor hooked in (False, True):\n    context = a.b(c) if hooked else nullcontext()\n"
        '    with context:\n        # why\n        f()\n    check.equal("n" if hooked else "outside of b", y, 2)'
    )


@pytest.mark.parametrize("head", ["with a.b() as c:", "with warnings.catch_warnings():", "with a, b():"])
def test_other_contexts_stay(head: str) -> None:
    assert not [*contrasted(f'{head}\n    f()\ncheck.equal("n", y, 2)', "n")]


@pytest.mark.parametrize(
    ("text", "instead", "name"),
    [
        ("a = torch.nn.utils.weight_norm(b())", "b()", "without weight_norm"),
        ("a = f()\ny = a(lambda x: x, z)", "lambda of, *args: of(*args)", "without f"),
    ],
)
def test_what_is_made_another_way(text: str, instead: str, name: str) -> None:
    ((changed, said),) = contrasted(f'{text}\ncheck.equal("n", y, 2)', "n")
    assert said == name
    assert f"if hooked else {instead}\n" in changed


@pytest.mark.parametrize("text", ["a = f()\ny = a(z)", "a = f()\ny = a", "a = f(b)"])
def test_what_is_used_otherwise_is_made_as_it_was(text: str) -> None:
    assert not [*contrasted(f'{text}\ncheck.equal("n", y, 2)', "n")]


def test_a_name_that_is_not_written_out() -> None:
    assert not [*contrasted('x.register_hook(f)\ncheck.equal(f"of {n}", y, 2)', "of a")]


def test_a_script_ends_with_its_fact() -> None:
    text = 'f()\ncheck.equal("n", y, 2)\ng()\ncheck.equal("m", y, 2)'
    assert ended(text, "n") == 'f()\ncheck.equal("n", y, 2)'
    assert ended(f"if a:\n    {text}", "a fact that is not there") is None


def test_a_fact_that_changes_nothing_is_stated_ahead() -> None:
    text = 'check.equal("n", y, 2)\ncheck.equal("m", len(y), 2)\ncheck.works("k", f)\ncheck.equal("l", y, 2)'
    (changed,) = moved(text, "n")
    assert changed.startswith('check.equal("m", len(y), 2)\ncheck.equal("n", y, 2)\ncheck.works')


@pytest.mark.parametrize(
    ("said", "proves_nothing"),
    [
        ("a: expected [], observed []\nb: expected [1], observed []", True),
        ("a: expected 0, observed 0\nb: expected 1, observed 0", True),
        ("a: expected [2], observed [2]\nb: expected [1], observed []", False),
        ("a: expected [], observed []\nb: expected [], observed [1]", False),
        ("a: expected 0.5, observed 0.5\nb: expected 1, observed 0", False),
    ],
)
def test_a_control_that_proves_nothing(said: str, proves_nothing: bool) -> None:
    assert vain(said, "a", "b") is proves_nothing


PROGRAM_WITH_HOOK = """
def judge(check):
    net = nn.Identity()
    net.register_forward_hook(lambda module, args, output: 3 * output)
    check.equal("output", net(torch.ones(1)), [1])
""".strip("\n")


def test_a_script_has_the_fact_without_a_hook_as_its_control(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookcheck.repro.program._lacking", lambda text: PROGRAM_WITH_HOOK.replace("judge", name))
    program = PROGRAMS["FW-01"]
    name = program.judge.__name__
    text = program_script(program, None, "output", executed)
    code, said = executed(text)
    assert code == 1
    assert said.startswith("without a hook: expected [1], observed [1.0]\noutput: expected [1], observed [3.0]")
