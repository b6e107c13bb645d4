"""Are control and experiment one body, which goes apart in one place?"""

from __future__ import annotations

import pytest

from hookcheck.repro.runs import forked


@pytest.mark.parametrize(
    ("experiment", "control", "body"),
    [
        ("a b", "a b", "a b"),
        ("a b c", "a c", "a|if experiment:|    b|c"),
        ("a c", "a b c", "a|if not experiment:|    b|c"),
        ("a b c", "a d c", "a|b if experiment else d|c"),
        ("a b=b c", "a d=d c", "a|if experiment:|    b=b|else:|    d=d|c"),
        ("with e:|    a", "a", "if experiment:|    with e:|        a|else:|    a"),
        ("def f():|    a|    b", "def f():|    a", "def f():|    a|    if experiment:|        b"),
        ("with e:|    a|b", "with o:|    a|b", "if experiment:|    with e:|        a|else:|    with o:|        a|b"),
    ],
)
def test_two_runs_in_one_body(experiment: str, control: str, body: str) -> None:
    separator = "|" if "|" in experiment else " "
    sides = (experiment.split(separator), control.split(separator if "|" in control else " "))
    assert forked(*sides) == body.split("|" if "|" in body else " ")


@pytest.mark.parametrize(
    ("experiment", "control", "joined"),
    [
        ("    f(net, x).backward()", "    net(x).backward()", "    (f(net, x) if experiment else net(x)).backward()"),
        ("y = net(a)", "y = net(b)", "y = net(a if experiment else b)"),
        ("y = net(x)", "z = net(x)", None),
        ("y = net(x)", "net(x)", None),
        ("with a():", "with b():", None),
        (f"y = {'a' * 60}", f"y = {'b' * 60}", None),
    ],
)
def test_lines_of_control_and_experiment_are_one(experiment: str, control: str, joined: str | None) -> None:
    lines = forked(["ahead()", experiment, "behind()"], ["ahead()", control, "behind()"])
    if joined is None:
        assert lines[1] == "if experiment:"
    else:
        assert lines == ["ahead()", joined, "behind()"]
