"""The machine of acts: the model by examples worked out by hand, torch beside it, the script, and planted faults."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from types import ModuleType

import pytest
import torch
from faults.engine import Fault, release
from faults.programs.interactions import FAULTS

from hookcheck.contract.machine.model import (
    Act,
    Backward,
    Copy,
    Entry,
    Fail,
    Forward,
    Grad,
    Register,
    Remove,
    Site,
    Train,
    fitted,
    steps,
)
from hookcheck.contract.machine.play import play
from hookcheck.contract.machine.search import Deviation, deviation, found, sequences
from hookcheck.contract.machine.source import source
from hookcheck.probe.state import preserved

NET, A, B = Site(), Site(0, "[0]"), Site(0, "[1]")
HERE = release(torch.__version__)

FORWARD = (
    Register("forward", A),
    Register("forward", A, prepend=True, with_kwargs=True),
    Register("forward"),
    Forward(x=5.0),
)
BACKWARD = (
    Register("full_backward", NET),
    Register("full_backward_pre", A),
    Register("full_backward", B),
    Forward(x=1.0),
    Remove(2),
    Backward(v=7.0),
)
GOING = (
    Register("forward_pre", A, removes=0),
    Register("forward", B, removes=1),
    Forward(),
    Forward(x=2.0, grad=False),
)
COPYING = (Register("forward_pre", B), Copy(way="pickle"), Remove(0), Register("forward", Site(1, "[0]")), Forward(1))
FAILING = (Register("forward", NET), Register("forward", NET, always_call=True), Register("forward_pre", A), Fail())
ALL = (*BACKWARD, *COPYING[1:], Fail(1), Train(0, False), Register("forward", removes=0), Forward(1, 3.0), Grad(1, 2.0))


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    with preserved(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize(
    ("acts", "logs"),
    [
        (
            FORWARD,
            [
                [],
                [],
                [],
                [
                    ("h2", "net0[0]", ((5.0,), 10.0)),
                    ("h1", "net0[0]", ((5.0,), {}, 10.0)),
                    ("h0", "net0[0]", ((5.0,), 10.0)),
                    ("h2", "net0[1]", ((10.0,), 30.0)),
                    ("h2", "net0", ((5.0,), 30.0)),
                    ("output", 30.0),
                ],
            ],
        ),
        (
            BACKWARD,
            [
                [],
                [],
                [],
                [("output", 6.0)],
                [],
                [
                    ("h2", "net0[1]", ((21.0,), (7.0,))),
                    ("h1", "net0[0]", ((21.0,),)),
                    ("h0", "net0", ((42.0,), (7.0,))),
                    ("gradient", 42.0),
                ],
            ],
        ),
        (
            GOING,
            [
                [],
                [],
                [("h0", "net0[0]", ((1.0,),)), ("h1", "net0[1]", ((2.0,), 6.0)), ("output", 6.0)],
                [("output", 12.0)],
            ],
        ),
        (
            COPYING,
            [
                [],
                [],
                [],
                [],
                [("h1", "net1[0]", ((1.0,), 2.0)), ("h0", "net1[1]", ((2.0,),)), ("output", 6.0)],
            ],
        ),
        (
            FAILING,
            [[], [], [], [("h2", "net0[0]", ((0.0,),)), ("h1", "net0", ((0.0,), None)), ("raised", "RuntimeError")]],
        ),
    ],
)
def test_the_model_says_what_is_worked_out_by_hand(acts: Sequence[Act], logs: list[list[Entry]]) -> None:
    assert steps(acts) == [*zip(acts, logs)]
    if HERE >= (2, 1):
        assert play(acts) == logs


@pytest.mark.parametrize(
    "acts",
    [
        (Remove(0),),
        (Forward(1),),
        (Backward(),),
        (Forward(grad=False), Grad()),
        (Register("forward", removes=1),),
        (Register("forward", NET, with_kwargs=True), Register("forward", NET, removes=0)),
        (Copy(), Copy(), Copy()),
    ],
)
def test_what_is_not_possible_is_left_out(acts: Sequence[Act]) -> None:
    assert [act for act, _ in steps(acts)] == [*acts[:-1]]


def test_options_that_a_torch_lacks_are_left_out() -> None:
    everything = Register("forward", NET, prepend=True, with_kwargs=True, always_call=True)
    names = {since: [*fitted(everything, since).options] for since in ((1, 13), (2, 0), (2, 1))}
    assert names == {
        (1, 13): [],
        (2, 0): ["prepend", "with_kwargs"],
        (2, 1): ["prepend", "with_kwargs", "always_call"],
    }
    assert fitted(Register("full_backward", prepend=True, with_kwargs=True), (2, 13)) == Register("full_backward")


@pytest.mark.skipif(HERE < (2, 0), reason="the acts are of kinds that came with torch 2.0")
def test_the_script_gives_the_same_log(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    expected = steps(ALL)
    assert [act for act, _ in expected] == [*ALL]
    module = ModuleType("printed")
    monkeypatch.setitem(sys.modules, "printed", module)  # where pickle looks for the hooks
    exec(source(expected), vars(module))
    assert vars(module)["history"] == [log for _, log in expected] == play(ALL)
    assert capsys.readouterr().out == ""


def test_the_script_says_where_hooks_note_something_else(capsys: pytest.CaptureFixture[str]) -> None:
    exec(source([(Forward(), [("output", 7.0)])]), {"__name__": "printed"})
    assert capsys.readouterr().out == "expected\n    ('output', 7.0)\n    observed\n    ('output', 6.0)\n"


def test_no_hook_outlives_the_acts() -> None:
    play((Register("forward"), Forward()))
    assert not torch.nn.modules.module._global_forward_hooks


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_planted_fault_is_found_and_shrunk(fault: Fault) -> None:
    if not fault.offered:
        pytest.skip("this torch lacks what the fault is about")
    with fault.patch():
        shown = found(sequences(HERE, going=False), 60)
    assert shown is not None
    assert len(shown.steps) <= 4
    assert repr(shown).startswith("import copy\n")
    assert deviation([act for act, _ in shown.steps]) is None


@pytest.mark.parametrize(
    ("observed", "gap"),
    [
        ([("h0",)], "not fired"),
        ([("h0",), ("h1",), ("h1",)], "fired too often"),
        ([("h1",), ("h0",)], "wrong order"),
        ([("h0",), ("h2",)], "wrong arguments"),
        ([("raised", "TypeError: no")], "raised"),
    ],
)
def test_a_deviation_has_a_gap(observed: list[Entry], gap: str) -> None:
    assert Deviation([(Forward(), [("h0",), ("h1",)])], observed).gap == gap
