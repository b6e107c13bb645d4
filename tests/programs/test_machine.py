"""The machine of acts: the model by examples worked out by hand, torch beside it, the corpus, and planted faults."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from types import ModuleType

import pytest
import torch
from faults.engine import Fault, release
from faults.programs.interactions import FAULTS

from hookcheck.probe.state import preserved
from hookcheck.programs.logs import Entry
from hookcheck.programs.machine import corpus, draw
from hookcheck.programs.machine.corpus import held, line, read, sequence
from hookcheck.programs.machine.draw import NEWEST, adding, curated, drawn
from hookcheck.programs.machine.model import (
    KINDS,
    Act,
    BackwardAct,
    CopyAct,
    FailAct,
    ForwardAct,
    GradAct,
    ModuleSite,
    RegisterAct,
    RemoveAct,
    TrainAct,
    fitted,
    steps,
)
from hookcheck.programs.machine.play import play
from hookcheck.programs.machine.reach import combinations, reached
from hookcheck.programs.machine.search import DeviatingActs, deviation, shrunk, without
from hookcheck.programs.machine.source import source

NET, A, B = ModuleSite(), ModuleSite(0, "[0]"), ModuleSite(0, "[1]")
HERE = release(torch.__version__)

FORWARD = (
    RegisterAct("forward", A),
    RegisterAct("forward", A, prepend=True, with_kwargs=True),
    RegisterAct("forward"),
    ForwardAct(x=5.0),
)
BACKWARD = (
    RegisterAct("full_backward", NET),
    RegisterAct("full_backward_pre", A),
    RegisterAct("full_backward", B),
    ForwardAct(x=1.0),
    RemoveAct(2),
    BackwardAct(v=7.0),
)
GOING = (
    RegisterAct("forward_pre", A, removes=0),
    RegisterAct("forward", B, removes=1),
    ForwardAct(),
    ForwardAct(x=2.0, grad=False),
)
COPYING = (
    RegisterAct("forward_pre", B),
    CopyAct(way="pickle"),
    RemoveAct(0),
    RegisterAct("forward", ModuleSite(1, "[0]")),
    ForwardAct(1),
)
FAILING = (
    RegisterAct("forward", NET),
    RegisterAct("forward", NET, always_call=True),
    RegisterAct("forward_pre", A),
    FailAct(),
)
ALL = (
    *BACKWARD,
    *COPYING[1:],
    FailAct(1),
    TrainAct(0, False),
    RegisterAct("forward", removes=0),
    ForwardAct(1, 3.0),
    GradAct(1, 2.0),
)


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
        (RemoveAct(0),),
        (ForwardAct(1),),
        (BackwardAct(),),
        (ForwardAct(grad=False), GradAct()),
        (RegisterAct("forward", removes=1),),
        (RegisterAct("forward", NET, with_kwargs=True), RegisterAct("forward", NET, removes=0)),
        (CopyAct(), CopyAct(), CopyAct()),
    ],
)
def test_what_is_not_possible_is_left_out(acts: Sequence[Act]) -> None:
    assert [act for act, _ in steps(acts)] == [*acts[:-1]]


def test_options_that_a_torch_lacks_are_left_out() -> None:
    everything = RegisterAct("forward", NET, prepend=True, with_kwargs=True, always_call=True)
    names = {since: [*fitted(everything, since).options] for since in ((1, 13), (2, 0), (2, 1))}
    assert names == {
        (1, 13): [],
        (2, 0): ["prepend", "with_kwargs"],
        (2, 1): ["prepend", "with_kwargs", "always_call"],
    }
    assert fitted(RegisterAct("full_backward", prepend=True, with_kwargs=True), (2, 13)) == RegisterAct("full_backward")
    assert fitted(RegisterAct("full_backward_pre", NET), (1, 13)) == RegisterAct("full_backward", NET)


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
    exec(source([(ForwardAct(), [("output", 7.0)])]), {"__name__": "printed"})
    assert capsys.readouterr().out == "expected\n    ('output', 7.0)\n    observed\n    ('output', 6.0)\n"


def test_no_hook_outlives_the_acts() -> None:
    play((RegisterAct("forward"), ForwardAct()))
    assert not torch.nn.modules.module._global_forward_hooks


def test_acts_come_back_from_their_line() -> None:
    acts = (RegisterAct("forward", ModuleSite(1, "[0]"), always_call=True, removes=0), RemoveAct(3), *ALL)
    assert sequence(line(acts)) == acts
    assert line((RegisterAct("forward", NET), ForwardAct(x=2.0))) == (
        '[{"kind":"forward","site":{"type":"ModuleSite"},"type":"RegisterAct"},{"type":"ForwardAct","x":2.0}]'
    )


def test_every_line_of_the_corpus_is_a_sequence_that_is_possible() -> None:
    lines = corpus.PATH.read_text(encoding="utf-8").splitlines()
    assert len({*lines}) == len(lines) == draw.COUNT
    for text, acts in zip(lines, read()):
        assert line(acts) == text
        assert [act for act, _ in steps(acts)] == [*acts]
        assert [fitted(act, NEWEST) if isinstance(act, RegisterAct) else act for act in acts] == [*acts]


@pytest.mark.parametrize("release", [(1, 8), (1, 13), (2, 0), (2, 1)])
def test_older_torches_can_play_the_whole_corpus(release: tuple[int, int]) -> None:
    for acts in held(release):
        assert [act for act, _ in steps(acts)] == [*acts]


OPTIONS = {
    "forward_pre": {"plain", "prepend", "with_kwargs", "global", "removes itself", "removes another"},
    "forward": {"plain", "prepend", "with_kwargs", "always_call", "global", "removes itself", "removes another"},
    "full_backward": {"plain", "prepend", "global", "removes itself", "removes another"},
    "full_backward_pre": {"plain", "prepend", "global", "removes itself", "removes another"},
}
CALLED = {
    "forward_pre": {"forward", "no_grad", "fail"},
    "forward": {"forward", "no_grad"},
    "full_backward": {"backward", "grad"},
    "full_backward_pre": {"backward", "grad"},
}
ACTS = {"forward", "no_grad", "fail", "backward", "grad"}


def test_the_corpus_reaches_every_hook_in_every_situation() -> None:
    everything = {
        (kind, option, situation, called)
        for kind in KINDS
        for option in OPTIONS[kind]
        for called in (True, False)
        for situation in (CALLED[kind] | {"deepcopy", "pickle", "eval"} if called else ACTS - CALLED[kind])
    }
    # A call that fails calls a forward hook only if it is asked to, with which removing hooks is not mixed.
    everything |= {("forward", option, "fail", True) for option in ("always_call", "prepend", "with_kwargs", "global")}
    everything -= {("forward", "always_call", "fail", False)}
    assert everything <= frozenset[object]().union(*map(reached, read()))


def test_what_a_sequence_reaches() -> None:
    acts = (
        RegisterAct("forward", NET, prepend=True),
        CopyAct(way="pickle"),
        TrainAct(1, False),
        ForwardAct(1),
        FailAct(0),
    )
    hook = ("forward", "prepend")
    assert reached(acts) == {
        *((*hook, situation, True) for situation in ("forward", "pickle", "eval")),
        (*hook, "fail", False),
    }
    neighbours = combinations((*FORWARD[:2], FORWARD[3]))
    assert ("forward", "forward", ("prepend", "with_kwargs"), ("plain",), False, False) in neighbours


@pytest.mark.parametrize("removing", [False, True])
@pytest.mark.parametrize("ungraded", [False, True])
def test_what_is_drawn_is_possible_and_the_same_for_the_same_seed(removing: bool, ungraded: bool) -> None:
    several = [drawn(Random(seed), NEWEST, removing, ungraded) for seed in range(40)]
    assert several == [drawn(Random(seed), NEWEST, removing, ungraded) for seed in range(40)]
    assert all([act for act, _ in steps(acts)] == [*acts] for acts in several)
    acts = [act for acts in several for act in acts]
    assert any(isinstance(act, RegisterAct) and act.removes is not None for act in acts) is removing
    assert any(isinstance(act, ForwardAct) and not act.grad for act in acts) is ungraded
    assert {type(act) for act in acts} == {
        RegisterAct,
        RemoveAct,
        ForwardAct,
        FailAct,
        BackwardAct,
        GradAct,
        CopyAct,
        TrainAct,
    }


def test_what_reaches_most_goes_first_and_lines_that_are_there_are_kept() -> None:
    small, large = (ForwardAct(),), (ForwardAct(), BackwardAct())
    a, b, c = (("a",), ("b",), ("c",))
    assert adding({small: frozenset({a}), large: frozenset({a, b})}, 9) == [large]
    assert adding({small: frozenset({c}), large: frozenset({a, b})}, 9) == [large, small]
    assert adding({small: frozenset({c}), large: frozenset({a, b})}, 1) == [large]
    assert curated([FORWARD], [FORWARD, BACKWARD, GOING], 2) == [FORWARD, BACKWARD]


def test_a_corpus_is_drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(corpus, "PATH", tmp_path / "corpus.jsonl")
    corpus.write([FORWARD])
    monkeypatch.setattr(sys, "argv", ["draw", "--count", "8", "--draws", "5"])
    draw.main()
    assert read()[0] == FORWARD
    assert len({*read()}) == 8


def test_what_is_left_of_acts_has_its_numbers_anew() -> None:
    acts = (
        *COPYING[:2],
        CopyAct(1),
        RegisterAct("forward", ModuleSite(2), removes=0),
        RemoveAct(0),
        RemoveAct(1),
        ForwardAct(2),
    )
    assert without(acts, acts) == acts
    assert without(acts, [None, *acts[1:]]) == (
        *acts[1:3],
        RegisterAct("forward", ModuleSite(2)),
        RemoveAct(0),
        ForwardAct(2),
    )
    assert without(acts, [acts[0], None, *acts[2:]]) == (
        acts[0],
        CopyAct(0),
        RegisterAct("forward", ModuleSite(1), removes=0),
        *acts[4:6],
        ForwardAct(1),
    )


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_the_corpus_shows_a_planted_fault(fault: Fault) -> None:
    if not fault.offered:
        pytest.skip("this torch lacks what the fault is about")
    playable = [acts for acts in held(HERE) if HERE >= (1, 10) or deviation(acts) is None]
    with fault.patch():
        counterexample = next(filter(None, map(deviation, playable)))
        shown = shrunk(counterexample)
    assert shown.difference.gap == counterexample.difference.gap
    assert len(shown.steps) <= 6
    assert shown.difference.site.name.startswith("import copy\n")
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
    assert DeviatingActs([(ForwardAct(), [("h0",), ("h1",)])], observed).difference.gap == gap
