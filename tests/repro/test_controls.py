"""What is the control of a script? A run without hooks, or a network one step away, be it of a class of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from hookcheck.repro.choice import ALONE, chosen, executed
from hookcheck.repro.controls import controls
from hookcheck.repro.due import due, due_of_leaf, dues_of_call
from hookcheck.repro.grown import COPY, by_another_layer, grown
from hookcheck.repro.heading import TOO_LONG
from hookcheck.repro.network import COPIED, ITS_OWN
from hookcheck.repro.overriding import at_once, overriding
from hookcheck.repro.question import CALLS, CLOSE, COUNT, RAISED, SAME, TYPE, VALUE, Question, question
from hookcheck.repro.script import EXPECTED_OF_CONTROL, Control, Way, script
from hookcheck.topology.layers.activation import Sigmoid, Tanh
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Apply, Backward, Call, Composite, Grad, Input, Topology, statements
from hookcheck.topology.ops.moving import Clone
from hookcheck.topology.ops.views import Transpose
from hookcheck.topology.source import source
from hookcheck.topology.tree import Ref
from hookcheck.topology.values import values

from .test_script import SMALL, seen

TURNED = Topology(
    Composite(
        (("act", Sigmoid()),),
        ("x",),
        (Apply("t", Transpose(0, 1), (Ref("x"),)), Call("h", "act", (Ref("t"),))),
        Ref("h"),
    ),
    (Input("x", (2, 3), requires_grad=True), Input("v", (3, 2))),
    (Call("y", "", (Ref("x"),)), Backward((Ref("y"),), (Ref("v"),))),
    dtype="float32",
)
"""A layer that is given a view which is not contiguous."""


def test_a_control_calls_the_net_and_goes_back() -> None:
    sighting = seen(SMALL, "backward", "GI-01")
    nets = [control.topology for control in controls(sighting, question(sighting)) if control.topology]
    assert nets
    for net in nets:
        assert {type(act) for act in statements(net)} >= {Call, Backward}
        assert all(act.outputs for act in statements(net) if isinstance(act, Backward))


def test_what_is_held_against_a_run_without_hooks_has_that_alone_as_its_control() -> None:
    sighting = seen(SMALL, "backward", "GI-01")
    for about in (Question(VALUE, SAME, path="y"), Question(VALUE, TYPE, path="y")):
        assert [*controls(sighting, about)] == [Control(hooked=True)]


def refusing_views(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """A layer that takes contiguous tensors alone."""
    if not x.is_contiguous():
        raise RuntimeError("x must be contiguous")
    return torch.sigmoid(x)


def beside_a_copy(monkeypatch: pytest.MonkeyPatch) -> str:
    """The script whose control makes a contiguous copy of what the layer is given."""
    with monkeypatch.context() as broken:
        broken.setattr(nn.Sigmoid, "forward", refusing_views)
        sighting = seen(TURNED, "acting_forward_pre", "AG-01")
        tried = (control for control in controls(sighting, question(sighting)) if _copies(control.topology))
        texts = (script(sighting, question(sighting), Way(control)) for control in tried)
        return next(text for text in texts if executed(text)[0] == 1)


def _copies(topology: Topology | None) -> bool:
    return topology is not None and COPIED in source(topology).modules


def test_what_is_wrong_of_a_view_is_right_of_a_contiguous_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    text = beside_a_copy(monkeypatch)
    assert "    if not experiment:\n        net.forward = lambda x: " in text
    assert ".contiguous()" in text
    assert executed(text)[0] == 0


def test_a_control_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    text = beside_a_copy(monkeypatch)

    def refusing(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError

    monkeypatch.setattr(nn.Sigmoid, "forward", refusing)
    assert executed(text)[0] not in (0, 1)


def test_a_script_without_a_control_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nn.Sigmoid, "forward", refusing_views)
    sighting = seen(TURNED, "acting_forward_pre", "AG-01")
    monkeypatch.setattr("hookcheck.repro.choice.controls", lambda *_: iter([Control()]))
    text = chosen(sighting).text
    assert f"\n# {ALONE}\n" in text
    assert "run(" not in text
    monkeypatch.setattr("hookcheck.repro.choice.controls", controls)
    monkeypatch.setattr("hookcheck.repro.choice.LONGEST", text.count("\n"))
    assert f"\n# {TOO_LONG}\n" in chosen(sighting).text
    monkeypatch.setattr("hookcheck.repro.choice.LONGEST", text.count("\n") - 1)
    assert "no control" not in chosen(sighting).text


def doubling(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """A layer whose gradient is twice what it should be."""
    return torch.sigmoid(2 * x - x.detach())


def turning_twice(self: torch.Tensor, *axes: int) -> torch.Tensor:
    """An operation with the same fault."""
    return torch.transpose(2 * self - self.detach(), *axes)


@pytest.mark.parametrize(
    ("kind", "clause"), [("acting_forward_pre", "AG-01"), ("tensor", "TN-01"), ("full_backward", "GI-01")]
)
def test_a_control_may_have_an_expected_number_of_its_own(
    monkeypatch: pytest.MonkeyPatch, kind: str, clause: str
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(nn.Sigmoid, "forward", doubling)
        text = chosen(seen(TURNED, kind, clause)).text
        assert executed(text)[0] == 1
    assert f"{EXPECTED_OF_CONTROL} = " in text
    assert executed(text)[0] == 0
    monkeypatch.setattr(torch.Tensor, "transpose", turning_twice)
    assert executed(text)[0] == 2


def test_what_is_due_in_another_network_is_what_the_oracle_has_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nn.Sigmoid, "forward", doubling)
    sighting = seen(TURNED, "full_backward", "GI-01")
    asked = question(sighting)
    turned = replace(TURNED, module=replace(TURNED.module, body=TURNED.module.body[:1], gives=Ref("t")))
    there = due(turned, sighting, asked)
    assert there is not None
    assert there.asked.expected.tolist() == values(turned)["v"].T.tolist()
    assert there.asked.at == asked.at
    assert due(TURNED, sighting, asked) is None, "it is wrong there as well"
    assert due(turned, sighting, replace(asked, event=1)) is None, "nothing is due there"


TWICE = Topology(
    Linear(1, 1, bias=False),
    (Input("x", (1,), requires_grad=True),),
    (
        Call("y", "", (Ref("x"),)),
        Grad("g", (Ref("y"),), (Ref("net.weight"),), create_graph=True),
        Backward((Ref("g", (0,)),)),
    ),
    dtype="float32",
    counting=True,
)
"""A backward that goes through another one: full hooks are given a gradient of the pass before."""


GRAD = torch.autograd.grad


def once_differentiable(*args: Any, **options: Any) -> tuple[torch.Tensor, ...]:
    """Gradients that lead nowhere."""
    return tuple(gradient.detach().requires_grad_() for gradient in GRAD(*args, **options))


def test_a_control_may_have_a_gradient_where_none_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    text = chosen(seen(TWICE, "full_backward", "GO-02")).text
    assert '\nexpected = "NoneType"' in text
    assert f'\n{EXPECTED_OF_CONTROL} = "Tensor"' in text
    assert executed(text)[0] == 1
    monkeypatch.setattr(torch.autograd, "grad", once_differentiable)
    assert executed(text)[0] == 0, "the hook is not called, and need not be"
    monkeypatch.setattr(nn.Module, "register_full_backward_hook", lambda *_: None)
    assert executed(text)[0] == 2, "that of the control must be called"


def test_how_often_a_hook_is_due_in_another_network_is_what_the_oracle_has_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(nn.Module, "register_full_backward_hook", twice)
        sighting = seen(TURNED, "full_backward", "BW-05")
    backward = Backward((Ref("y"),), (Ref("v"),))
    again = replace(TURNED, main=(*TURNED.main[:-1], replace(backward, retain_graph=True), backward))
    asked = question(sighting)
    assert (asked.place, asked.relation, asked.expected) == (CALLS, COUNT, 1)
    there = due(again, sighting, asked)
    assert there is not None
    assert there.asked.expected == 2
    assert there.why == "forward once, backward twice"


REGISTER = nn.Module.register_full_backward_hook


def twice(self: nn.Module, hook: Any) -> Any:
    """A registration that counts twice."""
    REGISTER(self, hook)
    return REGISTER(self, hook)


def test_what_is_grown_has_one_thing_more() -> None:
    nets = [*grown(replace(TURNED, inputs=(Input("x", (2, 3)), *TURNED.inputs[1:])))]
    asking = [net for net in nets if any(i.requires_grad for i in net.inputs)]
    assert [[i.name for i in net.inputs if i.requires_grad] for net in asking] == [["x"], ["v"]]
    others = [net for net in nets if net not in asking]
    copies = [act.op for net in others for act in statements(net) if isinstance(act, Apply) and act.out == COPY]
    places = ["the argument in main", "that of transpose", "that of act", "what is given back"]
    assert copies == [Clone()] * len(places) + [Clone(contiguous=True)] * len(places)


def test_another_layer_has_inputs_of_which_each_requires_grad() -> None:
    (net,) = by_another_layer(replace(SMALL, inputs=(Input("x", (1, 2)),)))
    assert (net.module, net.inputs) == (Tanh(), (Input("x", (1, 2), requires_grad=True),))
    assert [*by_another_layer(TURNED)] == []


TWO_PASSES = replace(
    SMALL,
    main=(Call("y", "", (Ref("x"),)), Backward((Ref("y"),), retain_graph=True), Backward((Ref("y"),))),
)
"""A network whose hooks on modules are called in two backwards."""


def wrong_at_last(self: nn.Module, hook: Any) -> Any:
    """A registration whose hook is given another gradient when it is called again."""
    passes = iter((1, 7))
    return REGISTER(self, lambda module, into, out: hook(module, tuple(next(passes) * g for g in into), out))


def test_a_call_before_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nn.Module, "register_full_backward_hook", wrong_at_last)
    sighting = seen(TWO_PASSES, "full_backward", "GI-01")
    asked = question(sighting)
    assert asked.event == 1
    before = [control for control in controls(sighting, asked) if control.value.startswith("calls[0]")]
    assert before
    for control in before:
        text = script(sighting, asked, Way(control, ITS_OWN))
        assert "return calls[0][0]" in text
        assert executed(text)[0] == 1
    monkeypatch.setattr(nn.Module, "register_full_backward_hook", always_wrong)
    assert executed(text)[0] == 2


def always_wrong(self: nn.Module, hook: Any) -> Any:
    """A registration whose hook is given another gradient."""
    return REGISTER(self, lambda module, into, out: hook(module, tuple(7 * g for g in into), out))


def test_a_call_before_that_is_wrong_too_is_no_control(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nn.Module, "register_full_backward_hook", always_wrong)
    sighting = seen(TWO_PASSES, "full_backward", "GI-01")
    asked = replace(question(sighting), event=1)
    assert [*dues_of_call(0, sighting, asked)] == []


def acting_twice(self: nn.Module, hook: Any, **options: Any) -> Any:
    """A registration whose hook is called again with what it returned."""
    return REGISTER_PRE(self, lambda module, args: hook(module, hook(module, args)), **options)


REGISTER_PRE = nn.Module.register_forward_pre_hook


def test_what_hooks_act_on_wrongly_is_right_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(nn.Module, "register_forward_pre_hook", acting_twice)
        text = chosen(seen(SMALL, "acting_forward_pre", "AG-01")).text
        assert "run(hooked=False), run(hooked=True)" in text
        assert f"{EXPECTED_OF_CONTROL} = " in text
        assert executed(text)[0] == 1
    assert executed(text)[0] == 0
    monkeypatch.setattr(nn.Linear, "forward", lambda module, x: nn.functional.linear(x * 3, module.weight, module.bias))
    assert executed(text)[0] == 2


def test_where_an_error_is_due_nothing_is_raised_without_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    sighting = seen(SMALL, "backward", "GI-01")
    asked = replace(RAISED, expected="RuntimeError", argument="broken on purpose")
    text = script(sighting, asked, Way(next(controls(sighting, asked))))
    assert "2 if control is not None else 0 if" in text
    assert executed(text)[0] == 1

    def raising(*_: Any) -> None:
        raise RuntimeError("broken on purpose")

    with monkeypatch.context() as broken:
        broken.setattr(nn.Module, "register_backward_hook", raising)
        assert executed(text)[0] == 0
    monkeypatch.setattr(nn.Linear, "forward", raising)
    assert executed(text)[0] == 2


def test_a_leaf_is_asked_for_the_number_that_a_hook_is_given_only_if_it_has_the_shape() -> None:
    sighting = seen(SMALL, "backward", "GI-01")
    asked = Question(CALLS, CLOSE, index="[0]", expected=np.ones((1, 2)), dtype="float32", observed=np.zeros((1, 2)))
    there = due_of_leaf(sighting.case, "x", asked, hooked=True)
    assert there is not None
    assert (there.asked.place, there.asked.path) == (VALUE, "x.grad")
    assert there.asked.expected.tolist() == values(SMALL)["weight"].tolist()
    assert there.asked.at == asked.at
    assert due_of_leaf(sighting.case, "weight", replace(asked, observed=np.zeros(1)), hooked=True) is None
    assert due_of_leaf(sighting.case, "none", asked, hooked=True) is None


NET = "class Net(nn.Module):\n"
SAME_FORWARD, OTHER_FORWARD = (f"    def forward(self, x):\n        return {text}" for text in ("x", "-x"))
CONSTRUCTED = "    def __init__(self):\n        pass\n\n"


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([f"{NET}{OTHER_FORWARD}"], ("Net", f"class Control(Net):\n{OTHER_FORWARD}")),
        ([], None),
        ([f"{NET}{CONSTRUCTED}{OTHER_FORWARD}"], None),
        ([f"{NET}{SAME_FORWARD}"], None),
        ([f"{NET}    scale = 2"], None),
        ([f"class Part(nn.Module):\n{OTHER_FORWARD}"], None),
    ],
)
def test_a_class_of_the_control_has_another_forward_alone(others: list[str], expected: object) -> None:
    assert overriding([f"{NET}{SAME_FORWARD}"], others) == expected
    assert overriding([], others) is None


@pytest.mark.parametrize(
    ("forward", "written"),
    [
        ("self, x):\n        return self.m0(x)", "net.forward = lambda x: net.m0(x)"),
        ("self, x):\n        h = self.m0(x)\n        return h", None),
        ("self, *, x):\n        return x", "net.forward = lambda *, x: x"),
        ("self):\n        return 1", None),
        (f"self, x):\n        return {' + '.join(['x'] * 30)}", None),
    ],
)
def test_a_short_forward_takes_no_class(forward: str, written: str | None) -> None:
    assert at_once(f"class Control(Net):\n    def forward({forward}") == written


INIT = "    def __init__(self):\n        super().__init__()\n"
CHILDREN = "        self.m0 = nn.ELU(inplace=True)\n        self.m1 = nn.ReLU()\n\n"


@pytest.mark.parametrize(
    ("children", "expected"),
    [
        (CHILDREN.replace("inplace=True", ""), "        self.m0 = nn.ELU()"),
        (CHILDREN.replace("self.m0", "self.m2"), None),
        ("        self.m0 = nn.ELU()\n\n", None),
        ("        m0 = 1\n        self.m1 = nn.ReLU()\n\n", None),
    ],
)
def test_a_class_of_the_control_makes_its_children_otherwise(children: str, expected: str | None) -> None:
    text = overriding([f"{NET}{INIT}{CHILDREN}{SAME_FORWARD}"], [f"{NET}{INIT}{children}{SAME_FORWARD}"])
    assert text == (expected and ("Net", f"class Control(Net):\n{INIT}{expected}"))
