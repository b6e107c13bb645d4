"""Scripts of situations: what is reduced, how two scenes become one run, and what is said where torch is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import torch
from faults.engine import Fault, release
from faults.programs import sequences as sequence_faults
from faults.programs.between import FAULTS as BETWEEN
from faults.programs.callers import FAULTS as CALLERS
from faults.programs.hooks_in_hooks import FAULTS as IN_HOOKS
from faults.programs.hooks_in_hooks import OF_PARTNERS
from faults.programs.situations import FAULTS

from hookcheck.contract.ledger import Ledger, applying, load
from hookcheck.errors import HookcheckError
from hookcheck.programs.situations import chains, sequences
from hookcheck.programs.situations.acts import Alter, Leave, Register, Remove, Situation, Trigger, Trouble, acts
from hookcheck.programs.situations.judge import finding, held
from hookcheck.programs.situations.sites import BY_CLAUSE, SITES
from hookcheck.record.model import record_name
from hookcheck.record.reading import read_folded
from hookcheck.repro.situations.blocks import Block, merged, parsed, rendered
from hookcheck.repro.situations.noting import Noting, logs
from hookcheck.repro.situations.reduced import (
    SCENES,
    Scene,
    controls,
    of_other_kinds,
    of_sequences,
    of_situation,
    reduced,
    sensible,
    symptom,
)
from hookcheck.repro.situations.script import situation_script
from hookcheck.repro.situations.title import title

from .cases import PROGRAMS, executed, limits

HERE = release(torch.__version__)
REPORTS = Path(__file__).parents[2] / "reports"
RECORD = REPORTS / "records" / record_name(str(torch.__version__), "cpu")
MODERN = pytest.mark.skipif(HERE < (2, 5), reason="hooks that came with torch 2.5")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@lru_cache(maxsize=1)
def ledger() -> Ledger:
    return applying(load(), torch.__version__, "cpu")


def deviating() -> dict[tuple[str, str | None, str], str]:
    """Of each clause, entry of the ledger and gap that the record of this torch has, the first situation."""
    seen: dict[tuple[str, str | None, str], str] = {}
    for group in read_folded(RECORD).alike if RECORD.exists() else ():
        for d in group.deviations:
            if d.clause in SCENES:
                seen.setdefault((d.clause, d.ledger, d.gap), d.subject)
    return seen


@pytest.mark.skipif(not RECORD.exists(), reason="there is no record of this torch")
@pytest.mark.slow
def test_all_that_a_record_shows_has_a_script_that_fails_beside_a_control() -> None:
    seen = deviating()
    assert seen
    for (clause, entry, _), name in seen.items():
        heading, text = situation_script(PROGRAMS[clause], name, ledger())
        limits(text)
        assert executed(text)[0] == 1, (clause, entry)
        assert "the control fails" in text, (clause, entry)
        assert text.count("\n") <= 50, (clause, entry)
        assert len(heading) <= 120


def showing(fault: Fault) -> Iterator[tuple[str, Situation]]:
    """The clauses and situations that show a planted fault, which no entry of the ledger explains."""
    for situation in held(HERE):
        clause = next(id for id, lanes in BY_CLAUSE.items() if SITES[situation.site].lane in lanes)
        if clause in fault.clauses:
            with fault.patch():
                shown = symptom(PROGRAMS[clause], Scene(situation, tuple(acts(situation))), ledger())
            if shown and shown.ledger is None and not finding(situation):
                yield clause, situation


UNWRITTEN = {
    "situations: DataParallel is called past its hooks": "a hook on all modules meets those of the host as well"
}
"""The faults that no script shows, with the reason."""

ALONE = (
    "situations: a backward says nothing of what was written to",
    "situations: a handle removes its hook as its context is entered",
    "situations: the context of a handle swallows an error",
)
"""The faults that need no hook, or no call of one: that none is called beside would say little."""

QUICK = ("load_state_dict forgets hooks", "a step hook is kept for ever", "a level of forward AD loses hooks")


def planted() -> list[Any]:
    """The faults, most of them slow."""
    quick, slow = {f"situations: {what}" for what in QUICK}, (pytest.mark.slow, pytest.mark.one_in(6))
    return [
        pytest.param(f, marks=() if f.what in quick else slow, id=f.what)
        for f in (*FAULTS, *BETWEEN, *CALLERS, *IN_HOOKS)
    ]


@pytest.mark.parametrize("fault", planted())
def test_a_planted_fault_has_a_script_that_fails_with_it_and_passes_without(fault: Fault) -> None:
    if not fault.offered:
        pytest.skip("this torch lacks what the fault is about")
    clause, situation = next(showing(fault))
    with fault.patch():
        if fault.what in UNWRITTEN:
            with pytest.raises(HookcheckError, match=f"no script that shows {clause} in "):
                situation_script(PROGRAMS[clause], situation.name, Ledger(()))
            return
        text = situation_script(PROGRAMS[clause], situation.name, Ledger(())).text
        limits(text)
        assert executed(text)[0] == 1
        assert ("the control fails" in text) is (fault.what not in ALONE)
    assert executed(text)[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("fault", OF_PARTNERS, ids=lambda fault: fault.what)
def test_a_fault_that_only_what_removes_its_partner_shows(fault: Fault) -> None:
    if not fault.offered:
        pytest.skip("this torch lacks what the fault is about")
    assert {situation.trouble for _, situation in showing(fault)} == {"removes its partner"}


IN_SEQUENCES = (
    "retaining a gradient takes the hooks of the result away",
    "an error of a step takes the hooks after steps away",
    "an error of a call in a dispatch mode takes forward hooks away",
    "a tensor hook that is registered in a dispatch mode is not called",
    "a step hook that is registered in a function mode is not called",
    "a step hook that a forward registers is not called",
)


@pytest.mark.slow
@pytest.mark.parametrize("what", IN_SEQUENCES)
def test_a_fault_that_sequences_show_has_a_script(what: str) -> None:
    fault = next(fault for fault in sequence_faults.FAULTS if fault.what == f"sequences: {what}")
    if not fault.offered:
        pytest.skip("this torch lacks what the fault is about")
    with fault.patch():
        facts = chains.by_fact(HERE)
        fact = next(name for name, each in facts.items() if any(map(sequences.deviation, each)))
        text = situation_script(PROGRAMS["SM-02"], fact, Ledger(())).text
        limits(text)
        assert executed(text)[0] == 1
        assert "the control fails" in text
    assert executed(text)[0] == 0


WHOLE = '''# /// script
# dependencies = ["torch"]
# ///
"""register_load_state_dict_post_hook, where a hook removes itself: RuntimeError."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn

if tuple(map(int, torch.__version__.split(".")[:2])) < (1, 13):
    raise SystemExit(3)


def run(experiment):
    calls = []
    net = nn.Linear(1, 1)

    def a(*_):
        calls.append("a")
        if experiment:
            handle.remove()

    handle = net.register_load_state_dict_post_hook(a)
    net.register_load_state_dict_post_hook(lambda *_: calls.append("b"))
    try:
        net.load_state_dict(net.state_dict())
    except Exception as error:
        calls.append(repr(error))
    return calls


expected = ["a", "b"]  # each hook is called once, in the order of registration
control, experiment = run(experiment=False), run(experiment=True)
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
'''
CHANGED = "register_load_state_dict_post_hook of net"


def changing() -> str:
    """The name of a situation in which a hook changes the table that is gone through, which torch has not mended."""
    there = (s for s in held(HERE) if s.site == CHANGED and s.trouble.startswith("re"))
    return next(filter(finding, there)).name


@MODERN
def test_whole_text() -> None:
    heading, text = situation_script(PROGRAMS["SI-02"], changing(), ledger())
    assert text == WHOLE
    assert heading == (
        "register_load_state_dict_post_hook, where a hook removes itself: "
        "RuntimeError: OrderedDict mutated during iteration"
    )


@MODERN
def test_exit_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert executed(WHOLE)[0] == 1
    with monkeypatch.context() as mended:
        load = torch.nn.Module.load_state_dict

        def of_copies(self: Any, *args: Any) -> Any:
            hooks, self._load_state_dict_post_hooks = self._load_state_dict_post_hooks, {}
            result = load(self, *args)
            for hook in [*hooks.values()]:
                hook(self, result)
            return result

        mended.setattr(torch.nn.Module, "load_state_dict", of_copies)
        assert executed(WHOLE)[0] == 0
    monkeypatch.setattr(torch, "__version__", "1.12.1+cpu")
    assert executed(WHOLE)[0] == 3


def test_what_is_reduced_is_as_plain_as_it_can_be() -> None:
    what = "situations: eval forgets hooks"
    fault = next(fault for fault in FAULTS if fault.what == what)
    with fault.patch():
        full = Situation(
            "forward of net", "input", before="eval", between="collect", removal="with",
            host="deep copy", optimizer="Adam", input="expanded",
        )  # fmt: skip
        scene = reduced(PROGRAMS["SI-01"], Scene(full, tuple(acts(full))), Ledger(()))
        assert scene == Scene(
            Situation("forward of net", before="eval"),
            (Register("a", "forward of net"), Alter("eval"), Trigger("forward")),
        )
        assert title(scene) == "register_forward_hook after eval: a hook is not called"
        assert [*controls(scene)] == [Scene(scene.situation, (scene.acts[0], scene.acts[2]))]
    with pytest.raises(HookcheckError, match="SI-01 conforms on torch"):
        reduced(PROGRAMS["SI-01"], Scene(full, tuple(acts(full))), Ledger(()))


def test_a_hook_of_another_kind_is_called_in_the_same_act() -> None:
    scene = Scene(Situation("forward of net"), (Register("a", "forward of net"), Trigger("forward")))
    others = {act.site for other in of_other_kinds(scene) for act in other.acts if isinstance(act, Register)}
    assert "forward_pre of net" in others
    assert "full_backward of net" not in others  # it is not called there
    assert "forward of net[0]" not in others


@pytest.mark.parametrize(
    ("done", "holds"),
    [
        ((Trigger("forward"), Register("a", "output"), Trigger("backward")), True),
        ((Register("a", "output"), Trigger("forward")), False),
        ((Trigger("backward"),), False),
        ((Trigger("forward"), Trigger("backward"), Trigger("backward")), False),
        ((Trigger("forward"), Trigger("load"), Trigger("backward")), False),
        ((Remove("a"),), False),
        ((Trouble("raises", "a"),), False),
        ((Trouble("the body raises", "a"), Trigger("forward")), True),
        ((Register("a", "input"), Trouble("removes another", "a", "b")), False),
        ((Register("a", "input"), Trouble("registers another", "a", "b"), Leave()), True),
    ],
)
def test_acts_have_what_they_need(done: tuple[Any, ...], holds: bool) -> None:
    assert sensible(done) is holds


def test_a_situation_that_is_not_there_is_said_to_be_so() -> None:
    with pytest.raises(HookcheckError, match="has no situation 'none'"):
        of_situation("none")
    with pytest.raises(HookcheckError, match="none of the sequences from 0 on deviates on torch"):
        of_sequences("sequences from 0 on")
    with pytest.raises(HookcheckError, match="no script can be written yet for program SI-01 on cuda"):
        situation_script(PROGRAMS["SI-01"], "none", Ledger(()), "cuda")


def test_statements_of_one_run_alone_are_asked_for() -> None:
    control = parsed(["net = one()", "def hook():", "    note()", "with a:", "    net(x)", "old()"])
    experiment = parsed(
        ["net = other()", "def hook():", "    note()", "    go()", "with a:", "    net(x)", "f()", "g()"]
    )
    assert rendered(merged(control, experiment)) == [
        "net = other() if experiment else one()",
        "",
        "def hook():",
        "    note()",
        "    if experiment:",
        "        go()",
        "",
        "with a:",
        "    net(x)",
        "if experiment:",
        "    f()",
        "    g()",
        "else:",
        "    old()",
    ]


def test_blocks_of_one_head_are_one() -> None:
    assert rendered([Block("with a:", ("one()",)), Block("with a:", ("two()",))]) == [
        "with a:",
        "    one()",
        "    two()",
    ]


def test_what_is_noted() -> None:
    done = (
        Register("a", "forward of net"),
        Register("b", "optimizer's step_pre"),
        Trouble("raises", "a"),
        Trigger("forward"),
        Trigger("step"),
    )
    log = logs(done)
    assert Noting().entries(log.each[3], log.sites) == ["a", "ValueError()"]
    assert Noting(values=True).entries(log.each[3], log.sites) == [("a", (5.0,), 30.0), "ValueError()"]
    assert Noting(closure=True).entries(log.each[4], log.sites) == ["b", "closure"]
    assert Noting(values=True).entries(log.each[4], log.sites) == [("b", True)]
    assert Noting(values=True).line("b", log.sites["b"]) == 'calls.append(("b", given[0] is optimizer))'
    assert (log.calls("a"), log.calls("a", 0, 3)) == (1, 0)
    assert not log.unordered
    assert replace(log, each=((("a",), ("b",)),)).unordered
