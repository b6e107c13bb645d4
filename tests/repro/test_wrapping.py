"""How a script is laid out: lines that are too long, and modules that are imported twice."""

from __future__ import annotations

import ast

import pytest

from hookcheck.repro.importing import named
from hookcheck.repro.wrapping import WIDTH, wrapped


def test_a_loop_that_is_too_long_stays_a_loop() -> None:
    loop = "for module_path in host.sites or [path for path, _ in net.named_modules()] if result is not None else ():"
    text = wrapped(loop)
    assert max(map(len, text.split("\n"))) <= WIDTH < len(loop)
    assert ast.dump(ast.parse(f"{text}\n    pass")) == ast.dump(ast.parse(f"{loop}\n    pass"))


def test_values_of_several_names_stand_on_lines_of_their_own() -> None:
    line = f"first, second = {'f' * 50}(1), {'g' * 50}(2)"
    assert wrapped(line) == f"first = {'f' * 50}(1)\nsecond = {'g' * 50}(2)"
    assert wrapped(line.replace("(2)", "(first)")).startswith("first, second = (\n")


def test_parameters_of_a_lambda_stay_together() -> None:
    line = f"result = submit({'f' * 50}, lambda y, x: gradient(y, x), {'g' * 50})"
    assert "\n    lambda y, x: gradient(y, x),\n" in wrapped(line)


def test_items_that_hold_a_loop_stand_on_lines_of_their_own() -> None:
    call = 'check("each call has the gradients of one backward", bool(all(a == 3 * b for a, b in seen_of_both)), True)'
    text = wrapped(call)
    assert max(map(len, text.split("\n"))) <= WIDTH < len(call)
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(call))


def test_a_method_of_what_a_call_gives_stays_behind_it() -> None:
    line = f"leaf = tensor.from_local({'f' * 50}, {'g' * 30}).requires_grad_()"
    assert wrapped(line) == f"leaf = tensor.from_local(\n    {'f' * 50}, {'g' * 30}\n).requires_grad_()"


IMPORTED = 'import_module("torch.distributed.tensor")'


@pytest.mark.parametrize(
    ("text", "of"),
    [
        (f"f()\ny = {IMPORTED}.a({IMPORTED}.b)", f"f()\ntensor = {IMPORTED}\ny = tensor.a(tensor.b)"),
        (f"y = {IMPORTED}.a()", f"y = {IMPORTED}.a()"),
        (f"tensor = 1\ny = {IMPORTED}.a({IMPORTED}.b)", f"tensor = 1\ny = {IMPORTED}.a({IMPORTED}.b)"),
        (f"def f():\n    {IMPORTED}.a({IMPORTED}.b)", f"def f():\n    {IMPORTED}.a({IMPORTED}.b)"),
    ],
    ids=["twice", "once", "the name is taken", "in a definition"],
)
def test_a_module_that_is_imported_twice_gets_a_name(text: str, of: str) -> None:
    assert named(text) == of
