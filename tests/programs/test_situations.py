"""Situations: the table of sites held complete, the model by hand, the corpus, the script, and planted faults."""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from faults.engine import release
from torch import nn

from hookcheck.programs.situations import corpus
from hookcheck.programs.situations.acts import UNDONE, Register, Remove, Situation, Trigger, acts
from hookcheck.programs.situations.axes import HOSTS, OPTIMIZERS
from hookcheck.programs.situations.corpus import line, read
from hookcheck.programs.situations.draw import AXES, PLAIN, absorbed, missing, missing_threes, packed, simplified
from hookcheck.programs.situations.fitting import REASONS, why_not
from hookcheck.programs.situations.judge import finding, fitted, held
from hookcheck.programs.situations.model import expected
from hookcheck.programs.situations.play import NAME
from hookcheck.programs.situations.script import CHANGE_LINES
from hookcheck.programs.situations.sequences import CHANGES, COPIES
from hookcheck.programs.situations.sites import LEFT_OUT, SITES

HERE = release(torch.__version__)
MODERN = pytest.mark.skipif(HERE < (2, 6), reason="sites that came with torch 2.6")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def registering() -> set[str]:
    """Whatever torch registers hooks with."""
    optimizer: Any = importlib.import_module("torch.optim.optimizer")
    graph: Any = importlib.import_module("torch.autograd.graph")
    owners = {
        "torch.nn.Module": nn.Module, "torch.nn.modules.module": nn.modules.module, "torch.Tensor": torch.Tensor,
        "torch.optim.Optimizer": torch.optim.Optimizer, "torch.optim.optimizer": optimizer,
        "torch.autograd.graph": graph, "torch.autograd.graph.Node": getattr(graph, "Node", nn.Module),
    }  # fmt: skip
    return {
        f"{owner}.{name}"
        for owner, where in owners.items()
        for name in vars(where)
        if re.match(r"_?register_.*hook$|register_prehook$|saved_tensors_hooks$|save_on_cpu$|^retain_grad$", name)
    }


def test_whatever_registers_hooks_is_a_site_or_left_out_for_a_reason() -> None:
    registers = " ".join(site.register for site in SITES.values()) + " saved_tensors_hooks("
    missing = {name for name in registering() if f"{name.rpartition('.')[2]}(" not in registers}
    assert missing <= {*LEFT_OUT}
    assert all(LEFT_OUT.values())


def test_every_site_can_be_registered_and_is_called() -> None:
    for site in SITES.values():
        if site.since <= HERE:
            situation = Situation(site.name)
            logs = [entries for _, entries in expected(acts(situation))]
            assert any(entry[0] == "a" for log in logs for entry in log), site.name
            assert finding(situation) is None, site.name


def logs(situation: Situation, what: str) -> list[list[tuple[Any, ...]]]:
    """What must be noted in each of the events of that name."""
    return [entries for act, entries in expected(acts(situation)) if isinstance(act, Trigger) and act.what == what]


def test_the_model_says_what_is_worked_out_by_hand() -> None:
    full = Situation("full_backward of net[0]", partner="input")
    assert logs(full, "backward") == [
        [("a", "net[0]", (6.0,), (3.0,)), ("b", "net[0]", (6.0,), (3.0,)), ("c", 6.0)],
        [("a", "net[0]", (6.0,), (3.0,)), ("b", "net[0]", (6.0,), (3.0,)), ("c", 6.0)],
        [("b", "net[0]", (6.0,), (3.0,)), ("c", 6.0)],
    ]
    assert logs(replace(full, between="remove"), "backward")[:2] == [
        [("a", "net[0]", (6.0,), (3.0,)), ("b", "net[0]", (6.0,), (3.0,)), ("c", 6.0)],
        [("b", "net[0]", (6.0,), (3.0,)), ("c", 6.0)],
    ]
    assert logs(Situation("all gradients", between="thaw"), "backward")[:2] == [
        [("a", [6.0, None]), ("b", [6.0, None])],
        [("a", [6.0, 15.0]), ("b", [6.0, 15.0])],
    ]
    doubled = logs(Situation("input", partner="parameter", between="double the output"), "backward")
    assert doubled[:2] == [[("c", 30.0), ("a", 12.0), ("b", 12.0)], [("c", 15.0), ("a", 6.0), ("b", 6.0)]]
    written = Situation("full_backward_pre of net", partner="input", between="set_")
    assert logs(written, "backward")[:2] == [
        [("raised", "RuntimeError"), ("a", "net", (1.0,)), ("b", "net", (1.0,))],
        [("a", "net", (1.0,)), ("b", "net", (1.0,)), ("c", 6.0)],
    ]
    assert logs(Situation("output", between="write to what is saved"), "backward")[0] == [
        ("raised", "RuntimeError"),
        ("a", 1.0),
        ("b", 1.0),
    ]
    again = Situation("forward of net", partner="full_backward_pre of net[0]", call="checkpoint")
    assert logs(again, "backward")[1:] == [
        [("a", "net", (5.0,), 30.0), ("b", "net", (5.0,), 30.0), ("c", "net[0]", (3.0,))],
        [("c", "net[0]", (3.0,))],
    ]
    graphless = Situation("full_backward of net", partner="forward of net", call="inference_mode")
    assert logs(graphless, "backward") == [[], [], [("b", "net", (6.0,), (1.0,))]]
    assert [len(log) for log in logs(graphless, "forward")] == [1, 1, 1]
    always = Situation("always called forward of net", trouble="the body raises", partner="forward of all modules")
    assert logs(always, "forward")[0] == [
        ("raised", "Stop"),
        ("c", "net[0]", (5.0,), 10.0),
        ("a", "net", (5.0,), None),
        ("b", "net", (5.0,), None),
    ]
    step = Situation("optimizer's step_pre", trouble="raises", partner="step_pre of all optimizers")
    assert logs(step, "step")[:2] == [
        [("raised", "Stop"), ("c", "optimizer"), ("a", "optimizer")],
        [("closure",), ("c", "optimizer"), ("a", "optimizer"), ("b", "optimizer")],
    ]
    removed = Situation("input", trouble="another removes it")
    assert logs(removed, "backward") == [[("a", 6.0), ("b", 6.0)], [("b", 6.0)], [("b", 6.0)]]
    registered = Situation("forward_pre of net[0]", first=True, trouble="registers another", removal="around a call")
    one, other, new = (
        [(hook, "net[0]", (5.0,)) for hook in hooks] for hooks in (("b", "a"), ("d", "b", "a"), ("d", "b"))
    )
    assert logs(registered, "forward") == [one, other, new]
    around = [entries for act, entries in expected(acts(registered)) if isinstance(act, Remove)]
    assert around == [other]
    raising = Situation("input", between="remove", removal="around an error")
    assert [log for act, log in expected(acts(raising)) if isinstance(act, Remove)] == [[("raised", "Stop")]] * 2
    assert logs(raising, "backward") == [[("b", 6.0)]] * 3
    copied = Situation("register_load_state_dict_post_hook of net[0]", before="deepcopy", first=False)
    assert logs(copied, "load") == [[("a", "net[0]"), ("b", "net[0]")]] * 3  # its handle is the old one's


def test_every_line_of_the_corpus_is_a_situation_that_can_be() -> None:
    texts = corpus.PATH.read_text(encoding="utf-8").splitlines()
    assert len({*texts}) == len(texts)
    for text, situation in zip(texts, read()):
        assert line(situation) == text
        assert not why_not(situation)


def test_any_two_choices_that_go_together_meet() -> None:
    assert missing(read()) == []
    left = missing(situation for situation in read() if situation.host != "replica")
    assert {("host", "replica")} <= {choice for pair in left for choice in pair}
    assert missing([*read(), *packed(left)]) == []
    assert len(packed(left)) < len(left)


@pytest.mark.parametrize("release", [(1, 8), (1, 10), (1, 13), (2, 0), (2, 1), (2, 3)])
def test_older_torches_can_take_the_corpus(release: tuple[int, int]) -> None:
    assert len(held(release)) > 150
    assert not any(map(why_not, held(release)))
    old = Situation("forward of net", partner="parameter", first=True, inner="function mode", input="negative view")
    assert fitted(old, (1, 9)) == Situation("forward of net", partner="parameter")
    assert fitted(Situation("all gradients"), (1, 13)) is None


MET = {
    "legacy and full backward hooks exclude each other": Situation("backward of net", "full_backward of net"),
    "there is no output to hang a neighbour on before the call": Situation("input", "output"),
    "there is no partner to remove": Situation("input", trouble="removes its partner"),
    "two sites are two": Situation("input", "input"),
    "a hook cannot be put first there": Situation("input", first=True),
    "a call that raises gives no output to hang a hook on": Situation("output", trouble="the body raises"),
    "contexts of saved tensors hide those around them": Situation("pack", outer="save_on_cpu"),
    "contexts of saved tensors hide each other": Situation("input", outer="save_on_cpu", inner="saved_tensors_hooks"),
    "a normed weight holds a graph, and all that was saved in it": Situation("pack", host="weight_norm"),
    "of two contexts of saved tensors one is on top": Situation("pack", "unpack"),
    "a context that is opened later is closed before": Situation("pack", between="add"),
    "a context is closed where it was opened": Situation("pack", trouble="removes itself"),
    "a context that is opened is no handle": Situation("pack", removal="copied handle"),
    "a context within itself is the same": Situation("input", outer="enable_grad", inner="enable_grad"),
    "a hook that goes in a call may lose its keyword arguments in it": Situation(
        "forward with kwargs", trouble="removes another"
    ),
    "a hook that calls the net would be called in that call, and one that raises is spoken of by itself": Situation(
        "input", trouble="another removes it", removal="around a call"
    ),
    "FW-24 speaks of it": Situation("always called forward of net", trouble="interrupts"),
    "a copy has parameters of its own, whose hooks stay with the original (U-13)": Situation(
        "parameter", before="deepcopy"
    ),
    "hooks stay with a parameter that is replaced (PH-08)": Situation("parameter", before="assign"),
    "Nodes that accumulate go with the data that is replaced (AG-04)": Situation("accumulating Node", before="set_"),
    "assigning registers every parameter and buffer once more": Situation("parameter registration", before="assign"),
    "a legacy hook holds its module weakly, and raises once that is gone (pytorch#109778)": Situation(
        "backward of net", between="drop"
    ),
    "making a net registers its parts and parameters": Situation("module registration", between="drop"),
    "what is to come in a backward calls a hook that is registered in it": Situation(
        "any gradient", trouble="registers another"
    ),
    "a parameter that is not initialised takes no hook": Situation("parameter", host="lazy"),
    "little can be done to parameters that are not initialised": Situation("input", host="lazy", before="load"),
    "a dispatch mode refused what makes a subclass until 2.5": Situation(
        "input", inner="dispatch mode", input="plain subclass"
    ),
    "fused optimizers refused what is not initialised until 2.5": Situation("input", host="lazy", optimizer="fused"),
    "a parametrised module cannot be pickled": Situation("input", host="parametrized", before="pickle"),
    "SZ-26 speaks of it": Situation("input", host="weight_norm", before="deepcopy"),
    "parameters that were replaced or frozen have no part in the graph": Situation(
        "input", between="assign", backward="grad"
    ),
    "whether a hook after accumulation is called where nothing is accumulated, is nowhere said": Situation(
        "post-accumulate of parameter", between="freeze"
    ),
    "what hooks on saved tensors hold is not checked for what was written to": Situation(
        "input", "pack", between="set_"
    ),
    "what is written to saves something itself on some releases": Situation("pack", between="double the output"),
    "the Node of the output is the one that raises": Situation("Node of output", between="set_"),
    "a legacy hook belongs to one Node of its module, before or after the one that raises (P2-11)": Situation(
        "backward of net", between="write to what is saved"
    ),
    "what is written to through a view has another Node than the view had": Situation(
        "Node of output", between="double the output", input="plain subclass"
    ),
    "a parameter that is frozen takes no hook": Situation("parameter", between="freeze", trouble="registers another"),
    "a parameter that is not initialised cannot be frozen": Situation("input", between="thaw", host="lazy"),
    "the backward of a norm needs the parameter itself, which was cast": Situation(
        "input", between="cast", host="weight_norm"
    ),
    "what a full hook is around must not be written to, also through an alias (BW-12)": Situation(
        "input", "full_backward of net", between="write to output"
    ),
    "a result without a graph takes no hook": Situation("output", call="no_grad"),
    "nothing is saved there, or hooks on what is saved are hidden by others or of another thread": Situation(
        "pack", call="checkpoint"
    ),
    "a checkpoint has hooks on what is saved": Situation(
        "input", call="checkpoint", inner="no new saved tensors hooks"
    ),
    "a checkpoint calls the net again, which must be as it was": Situation("input", call="checkpoint", between="cast"),
    "which of two hooks in a backward comes first, is nowhere said": Situation(
        "input", "parameter", trouble="removes its partner"
    ),
    "a checkpoint may call the net again before or after the Node of the output is reached": Situation(
        "Node of output", "forward of net", trouble="removes its partner", call="checkpoint"
    ),
    "torch refuses a functional call of DataParallel": Situation("input", call="functional_call", host="DataParallel"),
    "parameters that are made in such a call are not those of the net, or of inference for ever": Situation(
        "input", call="inference_mode", host="lazy"
    ),
    "what inference gives can be written to in inference alone": Situation(
        "input", call="inference_mode", between="write to output"
    ),
    "of two legacy hooks on other modules either may be first": Situation(
        "backward of net", "backward of net[0]", trouble="raises"
    ),
}


def test_each_reason_keeps_something_out() -> None:
    assert {why: why_not(situation) for why, situation in MET.items()} == {reason.why: reason.why for reason in REASONS}


def test_a_choice_is_simple_where_others_cover_it() -> None:
    twice = Situation("input", removal="twice", host="replica", input="expanded")
    plain = Situation("input", host="replica")
    assert simplified([replace(twice, removal="remove"), twice, plain]) == [
        Situation("input", input="expanded"),
        twice,
        plain,
    ]


def test_situations_take_up_what_they_need_not_leave_out() -> None:
    plain, hosted = PLAIN, replace(PLAIN, host="replica", backward="twice")
    pair = (("backward", "grad"), ("host", "replica"))
    assert absorbed([plain], [pair]) == [plain]  # nothing else is plain
    assert absorbed([plain, plain], [pair]) == [replace(PLAIN, backward="grad", host="replica"), plain]
    assert absorbed([hosted, hosted], [pair]) == [hosted, hosted]  # it has another backward
    three = (("lane", "x"), ("trouble", "raises"), ("host", "replica"))
    assert absorbed([plain, plain], [three]) == [plain, plain]  # it is of another lane
    assert missing_threes(read()) == []


def test_nothing_outlives_a_situation() -> None:
    situation = Situation("forward of all modules", outer="no new saved tensors hooks" if HERE >= (2, 0) else "")
    assert finding(situation) is None
    assert not nn.modules.module._global_forward_hooks
    assert NAME not in sys.modules


def test_a_situation_that_cannot_be_set_up_is_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HOSTS, "plain", replace(HOSTS["plain"], expression="nothing()"))
    seen = finding(Situation("input"))
    assert seen is not None
    assert (seen.gap, seen.observed) == ("raised", "NameError: name 'nothing' is not defined")


def test_every_change_is_a_choice() -> None:
    chosen = {*AXES["before"]} | {*AXES["between"]} | {*CHANGES} | {*COPIES} | {*UNDONE.values()}
    assert {*CHANGE_LINES} == chosen - {"", "add", "remove"}
    assert Register("a", "input") in [*acts(Situation("input"))]


def test_the_parent_of_an_optimizer_class_is_hooked_where_no_other_situation_made_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Torch puts hooks around the step of a class when an optimizer of that class is made."""
    monkeypatch.setattr(torch.optim.SGD, "step", lambda self, closure=None: None)
    choice = OPTIMIZERS["with super().step()"]
    names: dict[str, Any] = {"torch": torch, "net": nn.Linear(1, 1)}
    exec(f"{choice.needs}optimizer = {choice.expression}", names)
    assert getattr(torch.optim.SGD.step, "hooked", False)
