"""Scripts of acts that follow one another: short, with a control, and they say of torch what the machine says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from faults.engine import Fault, release
from faults.programs.interactions import FAULTS

from hookcheck.errors import HookcheckError
from hookcheck.probe.state import preserved
from hookcheck.programs.chapters.interactions import by_matter, matter
from hookcheck.programs.machine.corpus import held
from hookcheck.programs.machine.model import (
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
    steps,
)
from hookcheck.programs.machine.search import DeviatingActs, deviation
from hookcheck.repro.acts import Cast, Noted
from hookcheck.repro.machine import controls, machine_script, reduced

from .cases import PROGRAMS, executed
from .test_agreement import limits

HERE = release(torch.__version__)
NET, PART = ModuleSite(), ModuleSite(0, "[0]")
FACT = "hooks stay until they are removed, calls are with gradients"
OFFERED = [fault for fault in FAULTS if fault.offered]


@pytest.mark.parametrize(
    "fault",
    [pytest.param(f, marks=() if i % 7 == 0 else pytest.mark.slow, id=f.what) for i, f in enumerate(OFFERED)],
)
def test_a_planted_fault_has_a_script_that_fails_and_passes_once_it_is_mended(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    playable = [acts for acts in held(HERE) if HERE >= (1, 10) or deviation(acts) is None]
    monkeypatch.setattr("hookcheck.repro.machine.by_matter", lambda *args: {FACT: playable})
    with preserved(), fault.patch():
        title, text = machine_script(PROGRAMS["SM-01"], None, FACT, executed)
        limits(text)
        assert executed(text)[0] == 1
        assert f'"""{title[:60]}' in text
        assert "run(experiment=False)" in text
    code, said = executed(text)
    assert (code, said.count("['") + said.count("[(") + said.count("[]")) == (0, 2), said


@pytest.mark.skipif(HERE >= (1, 10), reason="since 1.10 nothing deviates")
@pytest.mark.parametrize("fact", [*{matter(acts): None for acts in held(HERE)}])
def test_what_is_known_to_deviate_has_a_script(fact: str) -> None:
    if not any(map(deviation, by_matter(HERE)[fact])):
        pytest.skip("it conforms here")
    _, text = machine_script(PROGRAMS["SM-01"], None, fact, executed)
    limits(text)
    assert executed(text)[0] == 1


GOLDEN = '''\
# /// script
# dependencies = ["torch"]
# ///
"""register_forward_hook: a call calls 2 hooks, not 1."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 8):
    raise SystemExit(3)


def run(experiment):
    calls = []
    net = nn.Linear(1, 1)
    if experiment:
        net.register_forward_hook(lambda *args: calls.append("first"))
    else:
        net.register_forward_pre_hook(lambda *args: calls.append("first"))
    net(torch.ones(1, 1))
    return calls


# A call runs the hooks that there are as it begins: on all modules, on its own; prepended first.
expected = ["first"]
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
'''


def test_the_whole_script(monkeypatch: pytest.MonkeyPatch) -> None:
    register = torch.nn.Module.register_forward_hook

    def twice(module: torch.nn.Module, hook: object, **options: object) -> object:
        register(module, hook, **options)  # type: ignore[arg-type]
        return register(module, hook, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(torch.nn.Module, "register_forward_hook", twice)
    title, text = machine_script(PROGRAMS["SM-01"], None, FACT, executed)
    assert text == GOLDEN
    assert title == "register_forward_hook: a call calls 2 hooks, not 1"


def test_what_conforms_or_is_about_another_device_is_refused() -> None:
    if HERE >= (1, 10):
        with pytest.raises(HookcheckError, match=r"SM-01 conforms on torch .* nothing to reproduce"):
            machine_script(PROGRAMS["SM-01"], None, FACT, executed)
    with pytest.raises(HookcheckError, match="played on the CPU alone: leave --device cuda out"):
        machine_script(PROGRAMS["SM-01"], "cuda", FACT, executed)


ALL: tuple[Act, ...] = (
    RegisterAct("full_backward", ModuleSite(0, "[1]")),
    RegisterAct("forward", PART, removes=1),
    RegisterAct("forward_pre"),
    CopyAct(way="pickle"),
    TrainAct(0, False),
    FailAct(1),
    ForwardAct(0, 5.0),
    BackwardAct(0, 2.0),
    GradAct(0, 3.0),
    RemoveAct(2),
    ForwardAct(1, 2.0, grad=False),
)


def test_what_does_not_matter_to_a_fault_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch that calls no hook where a call is without gradients, as the model sees it."""

    def shown(acts: Sequence[Act]) -> DeviatingActs | None:
        played = steps(acts)
        for at, (act, log) in enumerate(played):
            if isinstance(act, ForwardAct) and not act.grad and len(log) > 1:
                return DeviatingActs(played[: at + 1], log[-1:])
        return None

    monkeypatch.setattr("hookcheck.repro.machine.deviation", shown)
    first = shown(ALL)
    assert first is not None
    smallest = reduced(first)
    assert [act for act, _ in smallest.steps] == [RegisterAct("forward", NET), ForwardAct(grad=False)]
    assert next(controls(smallest)).played.acts == (RegisterAct("forward", NET), ForwardAct())


def test_entries_are_noted_as_much_as_is_asked() -> None:
    log = [("h1", "net1[0]", ((1.0,), 2.0)), ("output", 6.0), ("raised", "RuntimeError")]
    cast = Cast()
    assert cast.entries(log, Noted()) == ["second"]
    assert cast.entries(log, Noted(modules=True)) == [("second", "copied.0")]
    assert cast.entries(log, Noted(values=True, results=True)) == [
        ("second", (1.0,), 2.0),
        ("output", 6.0),
        "raised",
    ]
