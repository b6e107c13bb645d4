"""Does ``hookcheck check`` print what people and other programs expect, and end with the code that it documents?"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from test_cli import runner

import hookcheck.cli as cli
from hookcheck.cli.output import SCHEMAS

SOURCE = """
import torch
from torch import nn

def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 2), nn.Tanh()), torch.randn(2, 2)

def named():
    class Named(nn.Module):
        def forward(self, x, *, y): return x * y
    return Named(), (torch.ones(2, requires_grad=True),), {"y": torch.ones(2)}

class Faulty(nn.Linear):
    def forward(self, x):
        return super().forward(x) * (2 if self._forward_hooks else 1)

def faulty(): return Faulty(2, 2), torch.randn(2, 2)
def failing(): raise ValueError("no model today")
def bare(): return nn.Linear(2, 2)
def watch(model): return model[0].register_forward_hook(lambda *_: None)
def failing_hook(model): return model[0].register_forward_hook(lambda *_: 1 / 0)
number = 1
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "own_models.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("own_models", None)  # which other tests have written as well
    yield
    sys.modules.pop("own_models", None)


def asked(*arguments: str) -> tuple[int, str, str]:
    result = runner().invoke(cli.main, ["check", *arguments], prog_name="hookcheck")
    return result.exit_code, result.stdout, result.stderr


def test_text() -> None:
    code, out, err = asked("own_models:make", "--kinds", "full_backward,backward", "--format", "pretty")
    assert (code, err) == (0, "")
    assert out.startswith("Sequential on cpu, torch ")
    assert "backward: extra entries at" in out


def test_keyword_arguments() -> None:
    assert asked("own_models:named", "--kinds", "full_backward")[0] == 0


def test_own_hooks_that_make_the_step_raise_end_with_1() -> None:
    code, out, err = asked("own_models:make", "--hooks", "own_models:failing_hook", "--format", "pretty")
    assert (code, err) == (1, "")
    assert "with them the step raises ZeroDivisionError: division by zero" in out


def test_json() -> None:
    code, out, _ = asked("own_models:make", "--kinds", "full_backward", "--format", "json", "--contexts", "no_grad",
                         "--hooks", "own_models:watch")  # fmt: skip
    rows = [json.loads(line) for line in out.splitlines()]
    for row in rows:
        (schema,) = (s for s in SCHEMAS["check"] if set(s["required"]) == set(row))
        Draft202012Validator(schema).validate(row)
    assert code == 0
    assert {row["what"] for row in rows} == {"model", "seen", "verdict", "remark", "hook"}
    assert any(row.get("topic") == "in the context no_grad" for row in rows)


def test_exit_codes() -> None:
    code, out, _ = asked("own_models:faulty", "--kinds", "forward", "--format", "pretty")
    assert code == 1
    assert "OB-02 forward on the step" in out
    assert asked("own_models:make", "--kinds", "backward")[0] == 0
    assert asked("own_models:make", "--kinds", "backward", "--known")[0] == 1


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("own_models", "'own_models' is not MODULE:FUNCTION"),
        ("no_such_module:make", "no_such_module cannot be imported"),
        ("tests/own_models.py:make", "write it as package.module, without the path to its file"),
        ("own_models:absent", "own_models has no function absent"),
        ("own_models:number", "own_models has no function number"),
        ("own_models:failing", "failing() raises ValueError: no model today"),
        ("own_models:bare", "bare() must return (model, args) or (model, args, kwargs)"),
    ],
)
def test_bad_input_is_one_line(target: str, text: str) -> None:
    code, out, err = asked(target)
    assert (code, out) == (2, "")
    assert err.startswith("hookcheck: error: ")
    assert text in err
    assert err.count("\n") == 1
