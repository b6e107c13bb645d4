"""What is done twice in a script, without a part and with it? And what proves nothing as a control?"""

from __future__ import annotations

import pytest

from hookcheck.contract.clause import PROMISE, Subject
from hookcheck.programs.program import WHOLE, Program
from hookcheck.repro.alone import Alone
from hookcheck.repro.contrast import contrasted, ended, lists_what_is_wrong, moved, once, otherwise, vain
from hookcheck.repro.program import program_script, script_of

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


@pytest.mark.parametrize("head", ["if a:", "with a:", "if a:\n        pass\n    with a:"])
def test_it_does_so_under_a_condition_and_in_a_context(head: str) -> None:
    act = f"if b:\n    {head}\n        f()\n        check.equal('n', y, 2)"
    assert ended(f"{act}\n        g()\n    g()\nelse:\n    k()\ng()", "n") == f"{act}\nelse:\n    k()"
    assert ended(f"{act}\ng()".replace("if b:", "for b in c:"), "n") is None


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


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        ("net[0].register_hook(f)", "on all of net", "(net[0] if experiment else net).register_hook(f)"),
        ("module.forward(x)", "without forward", "(module.forward if experiment else module)(x)"),
        ("f(g, scale=2)", "without scale", "f(g, scale=2) if experiment else f(g)"),
        ("y = f()(g, z)", "without f", "y = (f() if experiment else lambda of, *args: of(*args))(g, z)"),
        ("w = f(net)\ny = w(x)", "without f", "w = f(net) if experiment else net"),
        ("y = f([a, b])", "without a", "y = f([a, b] if experiment else [b])"),
        ("torch.autograd.grad(y, x)", "by backward", "    torch.autograd.backward(y, inputs=x)"),
        ("change(net)", "without change", "    change(net)"),
        ("base.mul_(3)", "without mul_", "    base.mul_(3)"),
        ("f.append(x.register_hook(g))", "without register_hook", "    f.append(x.register_hook(g))"),
        ("y = x.register_hook(g), 1", "without a hook", "y = (x.register_hook(g) if experiment else None), 1"),
        (
            "with x.register_hook(g), suppress():\n    y = f(x)",
            "without a hook",
            "with (x.register_hook(g) if experiment else nullcontext()), suppress():",
        ),
        ("y = [torch.compile(net)]", "without torch.compile", "y = [(torch.compile(net) if experiment else net)]"),
        ("root.backward()", "backward of 1 * root", "(root if experiment else 1 * root).backward()"),
        (
            "net.register_forward_hook(f)",
            "with register_forward_pre_hook",
            "(net.register_forward_hook if experiment else net.register_forward_pre_hook)(f)",
        ),
    ],
)  # fmt: skip
def test_what_is_done_otherwise(text: str, name: str, line: str) -> None:
    changed = next(changed for changed, said in otherwise(f'{text}\ncheck.equal("n", y, 2)', "n") if said == name)
    assert f"\n    {line}\n" in changed
    assert changed.endswith(f'check.equal("n" if experiment else "{name}", y, 2)')


@pytest.mark.parametrize(
    "text",
    [
        "log.append(1)", "torch.backward(y)", "a = f([1.0, 2.0])", "y = f(lambda: net.register_f(g))",
        "future.set_result(2)",
    ],
)  # fmt: skip
def test_what_acts_or_notes_stays(text: str) -> None:
    assert not [*otherwise(f'{text}\ncheck.equal("n", y, 2)', "n")]


@pytest.mark.parametrize("due", ["[]", "0", "due"])
def test_what_may_run_all_stays_where_nothing_is_due(due: str) -> None:
    assert not [*otherwise(f'due = []\nrun(net)\ncheck.equal("n", y, {due})', "n")]


def test_a_fact_has_a_name_where_there_is_no_room_for_two() -> None:
    fact = "what is made of a module that has hooks keeps them"
    changed, name = next(otherwise(f'net.mul_(3)\ncheck.equal("{fact}", observed, expected)', fact))
    (longer, _) = next(otherwise(f'net.mul_(3)\ncheck.equal("{2 * fact}", observed, expected)', 2 * fact))
    assert changed.endswith(
        f'    name = "{fact}" if experiment else "{name}"\n    check.equal(name, observed, expected)'
    )
    apart = f'    name = "{name}"\n    if experiment:\n        name = "{2 * fact}"\n'
    assert longer.endswith(f"{apart}    check.equal(name, observed, expected)")


def test_what_cannot_be_done_twice_is_done_ahead_or_around() -> None:
    text = 'begin()\ntry:\n    net = f()\n    net.mul_(3)\n    check.equal("n", net, 2)\nfinally:\n    end()'
    changed = [changed for changed, name in otherwise(text, "n") if name == "without mul_"]
    assert changed[0].startswith("for experiment in (False, True):\n    begin()\n    try:\n        net = f()\n")
    assert changed[1] == (
        "begin()\ntry:\n    for experiment in (False, True):\n        net = f()\n        if experiment:\n"
        '            net.mul_(3)\n        check.equal("n" if experiment else "without mul_", net, 2)\n'
        "finally:\n    end()"
    )


def test_a_long_statement_has_a_branch_of_its_own() -> None:
    text = f'a = f({"b" * 60}, c=1)\ncheck.equal("n", a, 2)'
    changed = next(changed for changed, name in otherwise(text, "n") if name == "without c")
    assert f"    if experiment:\n        a = f({'b' * 60}, c=1)\n    else:\n        a = f({'b' * 60})\n" in changed


def test_the_control_of_a_script_in_both_places() -> None:
    assert once("for hooked in (False, True):\n    f()") == "for hooked in (False, False):\n    f()"


@pytest.mark.parametrize(("condition", "lists"), [("a != b", True), ("a == b", False), ("a", False)])
def test_a_list_of_what_is_wrong(condition: str, lists: bool) -> None:
    assert lists_what_is_wrong(f"wrong = [a for a, b in c if {condition}]") is lists


CONTROLS = {
    "a hook": (
        "net = nn.Identity()\nnet.register_forward_hook(lambda module, args, output: 3 * output)\n"
        'check.equal("output", net(torch.ones(1)), [1])',
        ["without a hook: expected [1], observed [1.0]", "output: expected [1], observed [3.0]"],
    ),
    "a hook within something": (
        "net = nn.Identity()\nhandles = (net.register_forward_hook(lambda *args: 3), 0)\n"
        'check.equal("output", net(1), 1)\nhandles[1] + 1',
        ["without a hook: expected 1, observed 1", "output: expected 1, observed 3"],
    ),
    "another part": (
        'x = torch.ones(1)\nx.mul_(3)\ncheck.equal("output", x, [1])',
        ["without mul_: expected [1], observed [1.0]", "output: expected [1], observed [3.0]"],
    ),
    "what names alone say": (
        'names = [name for name in dir(torch) if name == "nn"]\ncheck.equal("names", names, ["no such name"])',
        ["names: expected ['no such name'], observed ['nn']"],
    ),
}
"""What a program does, and what the script of its last fact says."""


@pytest.mark.parametrize("name", CONTROLS)
def test_a_script_has_its_fact_without_a_part_as_its_control(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body, says = CONTROLS[name]
    program = PROGRAMS["FW-01"]
    text = "\n    ".join([f"def {program.judge.__name__}(check):", *body.split("\n")])
    monkeypatch.setattr("hookcheck.repro.program._lacking", lambda _: text)
    fact = body.split("check.")[-1].split('"')[1]
    script = program_script(program, None, fact, executed)
    code, said = executed(script)
    assert code == 1
    assert said.strip().split("\n") == says
    assert ("# no control: " in script) is (said.count("\n") == 1)


def test_what_ends_early_has_its_first_fact_as_a_control(monkeypatch: pytest.MonkeyPatch) -> None:
    program = PROGRAMS["FW-01"]
    text = (
        f"def {program.judge.__name__}(check):\n    x = torch.ones(1)\n    x.mul_(3)\n"
        '    assert x.item() == 1, "it is not one"\n    check.equal("output", x, [1])'
    )
    monkeypatch.setattr("hookcheck.repro.program._lacking", lambda _: text)
    code, said = executed(program_script(program, None, WHOLE, executed))
    assert (code, said) == (1, "without mul_: expected [1.0], observed [1.0]\nAssertionError: it is not one\n")


def judge(_: object) -> None:
    """Stands for the text of a program that is in no chapter."""


ANOTHER_IS_WRONG_FIRST = """\
x = torch.tensor(1.0, requires_grad=True)
x.register_hook(lambda gradient: 2 * gradient)
(3 * x).backward()
check.equal("another", x.grad, 3.0)
check.equal("a leaf", x.is_leaf, True)
x.grad = None
(5 * x).backward()
check.equal("gradient", x.grad, 5.0)"""

ANOTHER_TURN_ENDS_IT = """\
for factor in (2.0, 3.0):
    x = torch.tensor(1.0, requires_grad=True)
    x.register_hook(lambda gradient: factor * gradient)
    (3 * x).backward()
    check.equal(f"by {factor}: gradient", x.grad, 3.0)
    check.equal(f"by {factor}: a leaf", x.is_leaf, True)"""

ONE_TURN_IS_SO = """\
for name, act in (("first", lambda: 1 / 0), ("second", lambda: None)):
    check.raises(f"{name} raises", ZeroDivisionError, act)
x = torch.tensor(1.0, requires_grad=True)
check.equal("gradient", x.grad, 1.0)"""


@pytest.mark.parametrize(
    ("body", "fact", "control"),
    [
        (ONE_TURN_IS_SO, "gradient", 'check("first raises", type(raised(lambda: 1 / 0)), ZeroDivisionError)'),
        (ANOTHER_IS_WRONG_FIRST, "gradient", 'check("a leaf", x.is_leaf, True)'),
        (ANOTHER_TURN_ENDS_IT, "by 3.0: gradient", 'check("by 3.0: a leaf", x.is_leaf, True)'),
    ],
)
def test_what_is_wrong_first_takes_no_control(body: str, fact: str, control: str) -> None:
    text = "def judge(check):\n" + "\n".join(f"    {line}" for line in body.split("\n"))
    program = Program("XX-01", PROMISE, "It holds.", "1.7", "docs", ("stray",), Subject.PROGRAM, judge)
    script = script_of(program, "cpu", fact, executed, Alone({"import torch"}, [text]))
    assert f"\n{control}\n" in script
    assert (executed(script)[0], script.count("check(")) == (1, 3)  # its definition, the control and the fact


CALLED_TWICE = """\
net = torch.nn.Sequential(torch.nn.ReLU())
log = []

def hook(module, args, output):
    log.append(type(module).__name__)

handles = [module.register_forward_hook(hook) for module in (net, net[0])]
net(torch.ones(1))
check.equal("calls", log, {})"""


@pytest.mark.parametrize("due", ["['ReLU', 'Linear']", "['ReLU']", "['ReLU', 'Sequential', 'Sequential']"])
def test_a_hook_without_which_less_is_observed_stays(due: str) -> None:
    """Without any hook the fact is not so either, and says nothing of what the hooks are given."""
    body = CALLED_TWICE.format(due)
    text = "def judge(check):\n" + "\n".join(f"    {line}" if line else "" for line in body.split("\n"))
    program = Program("XX-01", PROMISE, "It holds.", "1.7", "docs", ("stray",), Subject.PROGRAM, judge)
    script = script_of(program, "cpu", "calls", executed, Alone({"import torch"}, [text]))
    assert executed(script)[1].endswith("observed ['ReLU', 'Sequential']\n")
