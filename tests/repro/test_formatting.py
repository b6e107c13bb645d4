"""Are scripts as formatter and linter have them, so that nobody who files one has to touch it?"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ruff import find_ruff_bin

from hookcheck.repro.formatting import FIXED, WIDTH, formatted

REPORTS = Path(__file__).parents[2] / "reports"


@pytest.mark.parametrize("command", [("format", "--check"), ("check", "--select", f"E9,F,{FIXED}")])
@pytest.mark.parametrize("folder", ["scripts", "upstream"])
def test_scripts_that_are_kept_need_nothing_done(folder: str, command: tuple[str, ...]) -> None:
    run = subprocess.run(
        [find_ruff_bin(), *command, "--isolated", "--line-length", str(WIDTH), str(REPORTS / folder)],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout


def test_imports_are_sorted_and_one_a_module() -> None:
    text = "from torch import nn\nimport torch\nfrom torch import fx\nimport gc\nx = gc, torch, nn, fx"
    assert formatted(text) == "import gc\n\nimport torch\nfrom torch import fx, nn\n\nx = gc, torch, nn, fx\n"


def test_what_has_room_on_one_line_stands_there() -> None:
    text = "f(\n    a,\n    b,\n)\nf(\n    a,  # why\n)\n"
    assert formatted(text) == "f(a, b)\nf(\n    a  # why\n)\n"


def test_there_is_one_blank_line_where_a_formatter_needs_none() -> None:
    assert formatted("x = 1\n\n\n\ny = 2\ndef f():\n    pass") == "x = 1\n\ny = 2\n\n\ndef f():\n    pass\n"


@pytest.mark.parametrize(
    "begun", ["x = 1", "def g():\n        pass", "import torch", "# why\n    x = 1", "if a:\n        x = 1"]
)
@pytest.mark.parametrize("head", ["def run():", "def run():  # why", "class A:"])
def test_a_block_begins_at_once(head: str, begun: str) -> None:
    text = formatted(f"{head}\n\n    {begun}\n")
    assert text == f"{head}\n    {begun}\n"
    assert formatted(text) == text


@pytest.mark.parametrize(
    ("text", "of"),
    [
        ("(y).register_hook(f)", "y.register_hook(f)"),
        ("((y)).grad", "y.grad"),
        ("a = b + (net(x)[0])[1] + (y.grad_fn).name()", "a = b + net(x)[0][1] + y.grad_fn.name()"),
        ("(f)(lambda é: (é).grad)", "f(lambda é: é.grad)"),
        *(
            (text, text)
            for text in ("(1 * y).grad", "f(y).grad", "(a or b)(x)", "(1).real", 'f"{(y).grad}"', "(y,)[0]")
        ),
    ],
)
def test_what_something_is_taken_of_has_no_brackets_that_it_does_not_need(text: str, of: str) -> None:
    assert formatted(text) == f"{of}\n"


@pytest.mark.parametrize(
    ("text", "of"),
    [
        (f"f(1)  # {'a comment ' * 9}and more", f"# {'a comment ' * 9}and more\nf(1)\n"),
        (f"# {'a comment ' * 11}", f"# {'a comment ' * 9}a\n# comment a comment\n".replace("  ", " ")),
        (f"if a:\n    f(1)  # {'a comment ' * 9}", f"if a:\n    # {'a comment ' * 9}".rstrip() + "\n    f(1)\n"),
    ],
    ids=["of a statement", "of a line", "in a block"],
)
def test_a_comment_that_is_too_long_stands_above(text: str, of: str) -> None:
    assert formatted(text) == of


def test_what_is_not_python_is_refused() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        formatted("def")
