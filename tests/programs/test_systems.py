"""The worked programs: what they are held to is right, what is wrong is told, and each runs as a script."""

from __future__ import annotations

import runpy
from typing import Any

import numpy as np
import pytest
from torch import nn

from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.words import stated
from hookcheck.oracle.tolerance import assert_close, close
from hookcheck.programs.check import Check
from hookcheck.programs.facts import facts_of
from hookcheck.programs.program import Program
from hookcheck.programs.systems import judging, two_layer_sigmoid
from hookcheck.programs.systems.chains import TIED, gradients
from hookcheck.programs.systems.oracles import captured, expectation, sigmoid_net
from hookcheck.programs.systems.side_by_side import differing, hold, table
from hookcheck.topology.values import draw

RIGHT = expectation(sigmoid_net(two_layer_sigmoid.LAYERS, two_layer_sigmoid.DATA, two_layer_sigmoid.COTANGENT))
FULL = hasattr(nn.Module, "register_full_backward_hook")


@pytest.mark.parametrize("id", [f"SYS-0{number}" for number in range(1, 7)])
def test_all_that_a_program_records_is_right(id: str) -> None:
    program = CLAUSES[id]
    assert isinstance(program, Program)
    assert program.chapter == "systems"
    assert {fact.name: fact.finding for fact in facts_of(program, "cpu") if fact.finding} == {}


@pytest.mark.parametrize("what", RIGHT, ids="{0[0]}-{0[1]}-{0[2]}".format)
def test_each_number_counts(what: Any) -> None:
    """A number off by a millionth, a None, a tensor or a call too many or too few: each is reported."""
    (array,) = RIGHT[what]
    off = array.copy()
    off.flat[-1] += 1e-6
    for wrong in ((off,), (None,), (array, array), ()):
        assert differing(RIGHT, {**RIGHT, what: wrong}, "float64") == [what]
    assert differing(RIGHT, {w: a for w, a in RIGHT.items() if w != what}, "float64") == [what]
    assert differing({w: a for w, a in RIGHT.items() if w != what}, RIGHT, "float64") == [what]


def test_a_finding_has_what_is_wrong_and_nothing_else() -> None:
    right = {("fc", "output", 0): (np.array([1.0]),), ("fc", "grad_input", 0): (np.array([2.0]),)}
    check = Check()
    hold(check, "one", right, {**right, ("fc", "grad_input", 0): (np.array([3.0]),)}, "float64")
    hold(check, "none", right, right, "float64")
    first, second = (fact.finding for fact in check.facts)
    assert second is None
    assert first is not None
    assert first.expected == stated({"fc grad_input #0": "([2.0],)"})
    assert first.observed == stated({"fc grad_input #0": "([3.0],)"})


def test_the_oracle_of_captured_gradients_is_analytic() -> None:
    """Of ``mean(x Wᵀ + b)``: the mean of W's rows for the input, and 1/10 for each entry of the bias."""
    _, expected = judging.collected_attention(judging.CHAINS["0"], "0", "legacy", "float64")
    for legacy, gradient in ((False, draw(0, "0.weight", (10, 10)).mean(0)[None]), (True, np.full(10, 0.1))):
        for n in range(2):
            (capture,) = captured(expected, "0", legacy)["capture", "gradient", n]
            assert_close(capture, gradient)


@pytest.mark.parametrize("chain", judging.NETS.values(), ids=judging.NETS)
def test_the_range_cuts_some_numbers_and_not_others(chain: Any) -> None:
    """The numbers tell a clamp from none, from one at the wrong end, and from a constant."""
    for grads in judging.analytic(chain, "float64")[0]:
        everything = np.concatenate([gradient.ravel() for gradient in grads.values()])
        inside = (everything > judging.LOW) & (everything < judging.HIGH)
        for cut in (everything < judging.LOW, everything > judging.HIGH, inside):
            assert cut.any()


def test_a_parameter_that_is_used_twice_is_clamped_once() -> None:
    """Clamping each use of it would give something else than clamping their sum, as after backward."""
    numbers = {name: draw(0, name, shape) for name, shape in (("fc.weight", (3, 3)), ("fc.bias", (3,)))}
    apart = tuple(zip(("first", "sigmoid", "second"), (step for _, step in TIED)))
    copies = {f"{use}.{key}": numbers[f"fc.{key}"] for use in ("first", "second") for key in ("weight", "bias")}
    uses = gradients(apart, copies, judging.DATA[0], judging.WEIGHTS)
    (one, _), _ = judging.analytic(TIED, "float64")
    for name in ("weight", "bias"):
        first, second = uses[f"first.{name}"], uses[f"second.{name}"]
        assert_close(first + second, one[f"fc.{name}"])
        cut = [np.clip(g, judging.LOW, judging.HIGH) for g in (first, second, first + second)]
        assert not close(cut[0] + cut[1], cut[2], "float32", "cpu")  # no rounding, even of float32


def test_the_table_marks_what_differs() -> None:
    """≠ stands before what is not right, and what was not seen is said to be nothing."""
    right = {("fc", "output", 0): (np.array([1.0]),), ("fc", "grad_input", 0): (np.array([2.0]),)}
    seen = {("fc", "output", 0): (np.array([1.0]),), ("fc", "grad_input", 0): (np.array([3.0]), None)}
    assert table(right, {"legacy": seen, "full": {}}, "float64").splitlines() == [
        "what             | oracle   | legacy          | full",
        "fc output #0     | ([1.0],) |   ([1.0],)      | ≠ nothing",
        "fc grad_input #0 | ([2.0],) | ≠ ([3.0], None) | ≠ nothing",
    ]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("two_layer_sigmoid", 4),
        ("attention_capture", 2),
        ("gradient_clipper", 2),
        ("shape_inspector", 0),
        ("feature_maps", 0),
        ("hooked_dropout", 1),
    ],
)
@pytest.mark.filterwarnings("ignore:.*found in sys.modules", "ignore:Using a non-full backward hook")
def test_each_runs_as_a_script(name: str, wrong: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Legacy columns, gradients without clipping and the output under dropout are marked.

    They run in this process, not in one of their own: torch 1.8.0 can hang when a process ends soon after its first
    backward (in ``Engine::~Engine``, waiting for a thread that is gone).
    """
    runpy.run_module(f"hookcheck.programs.systems.{name}", run_name="__main__")
    text = capsys.readouterr().out
    assert len(text.splitlines()) >= 3
    assert text.count("≠") == wrong
    if " legacy " in text:
        assert ("full" in text.splitlines()[0]) is FULL
        assert sum("≠" in line.split(" | ")[2] for line in text.splitlines()) == wrong
