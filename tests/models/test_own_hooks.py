"""Does check_module say of one's own hooks what they receive, how often, what they do, and which stay behind?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.modules import module as torch_module

import hookcheck
from hookcheck.errors import HookcheckError
from hookcheck.models.result import CONFORMS, KNOWN, NEW, NOT_JUDGED, NOT_REACHED, ModelCheck, OwnHook
from hookcheck.releases.numbers import release

REGISTER = torch_module.register_module_forward_pre_hook
pytestmark = pytest.mark.filterwarnings("ignore")
RELEASE = release(torch.__version__)
FULL = pytest.mark.skipif(RELEASE < (1, 8), reason="full backward hooks came with 1.8")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 3)
        self.act = nn.Tanh()
        self.head = nn.Linear(3, 1)
        self.unused = nn.Linear(1, 1)

    def forward(self, x: Any) -> Any:
        return self.head(self.act(self.act(self.fc(x))))


def checked(hooks: Any, model: nn.Module | None = None) -> ModelCheck:
    torch.manual_seed(0)
    return hookcheck.check_module(model or Net(), torch.randn(3, 2, requires_grad=True), hooks=hooks)


def only(result: ModelCheck, kind: str) -> OwnHook:
    (match,) = [hook for hook in result.hooks if hook.kind == kind]
    return match


def look(*_: Any) -> None:
    """A hook that looks on."""


def on_output(module: Any, args: Any, output: Any) -> None:
    output.register_hook(look)


def of_many_kinds(model: Any) -> list[Any]:
    full = [model.fc.register_full_backward_hook(look)] if RELEASE >= (1, 8) else []
    return [
        model.act.register_forward_hook(on_output),
        *full,
        model.fc.weight.register_hook(look),
        torch_module.register_module_forward_pre_hook(look),
        model.unused.register_forward_hook(look),
    ]


def test_what_looks_on_receives_what_it_must() -> None:
    result = checked(of_many_kinds)
    result.raise_if_deviating()
    counts = {(hook.kind, hook.on): (hook.called, hook.due) for hook in result.hooks}
    assert counts == {
        ("forward", "act"): (2, 2),
        ("output_tensor", "act[0]"): (2, 2),
        **({("full_backward", "fc"): (1, 1)} if RELEASE >= (1, 8) else {}),
        ("tensor", "fc.weight"): (1, 1),
        ("global_forward_pre", "all modules"): (5, 5),
        ("forward", "unused"): (0, 0),
    }
    assert not any(hook.left or hook.returned or hook.wrote or hook.changed for hook in result.hooks)
    verdicts = {hook.on: {verdict.verdict for verdict in hook.judged} for hook in result.hooks}
    assert verdicts.pop("unused") == {NOT_REACHED}
    assert set().union(*verdicts.values()) == {CONFORMS}
    assert "your hooks" in str(result)
    assert only(result, "output_tensor").place.endswith(f"test_own_hooks.py:{on_output.__code__.co_firstlineno + 1}")


def test_a_legacy_hook_receives_what_the_ledger_knows() -> None:
    hook = only(checked(lambda model: model.head.register_backward_hook(look)), "backward")
    assert {verdict.verdict for verdict in hook.judged} == {KNOWN, CONFORMS}
    assert hook.called == hook.due == 1
    assert "instead of" in hook.received


def doubled(module: Any, grad_input: Any, grad_output: Any) -> Any:
    return tuple(gradient * 2 for gradient in grad_input)


def halved(gradient: Any) -> None:
    gradient.mul_(0.5)


@FULL
def test_what_is_returned_and_written_shows_in_what_it_changes() -> None:
    acting = only(checked(lambda model: model.act.register_full_backward_hook(doubled)), "full_backward")
    assert (acting.returned, acting.wrote) == (2, 0)
    assert acting.changed == ("the gradient of fc.weight", "the gradient of fc.bias", "the gradient of input 0")
    assert {verdict.verdict for verdict in acting.judged} == {CONFORMS}  # the second call too: nothing was doubled yet
    writing = only(checked(lambda model: model.fc.bias.register_hook(halved)), "tensor")
    assert (writing.returned, writing.wrote, writing.changed) == (0, 1, ("the gradient of fc.bias",))
    same = only(checked(lambda model: model.fc.register_forward_hook(lambda m, args, out: out)), "forward")
    assert (same.returned, same.changed) == (1, ())


def test_of_several_that_act_each_is_told_apart() -> None:
    def hooks(model: Any) -> list[Any]:
        return [
            model.fc.weight.register_hook(lambda gradient: gradient * 0),
            model.head.weight.register_hook(lambda gradient: gradient + 1),
        ]

    assert {hook.on: hook.changed for hook in checked(hooks).hooks} == {
        "fc.weight": ("the gradient of fc.weight",),
        "head.weight": ("the gradient of head.weight",),
    }


def test_what_stays_behind_is_told_and_removed() -> None:
    @contextmanager
    def hooks(model: Any) -> Iterator[None]:
        model.fc.register_forward_hook(look)
        handle = model.head.register_forward_hook(look)
        yield
        handle.remove()

    model = Net()
    assert {hook.on: hook.left for hook in checked(hooks, model).hooks} == {"fc": True, "head": False}
    assert not model.fc._forward_hooks
    assert only(checked(lambda model: model.fc.register_forward_hook(look).remove), "forward").left is False
    assert only(checked(lambda model: torch_module.register_module_forward_hook(look) and None), "global_forward").left
    assert not torch_module._global_forward_hooks


def test_a_hook_on_all_modules_is_seen_by_whatever_name_it_is_registered() -> None:
    hook = only(checked(lambda model: REGISTER(look)), "global_forward_pre")
    assert (hook.called, hook.due, hook.left) == (5, 5, False)
    assert {verdict.verdict for verdict in hook.judged} == {CONFORMS}
    known = REGISTER(look)
    assert [hook.kind for hook in checked(lambda model: model.fc.register_forward_hook(look)).hooks] == ["forward"]
    known.remove()


class Writing(Net):
    def forward(self, x: Any) -> Any:
        return self.head(torch.relu_(self.fc(x)))


@FULL
def test_a_full_hook_that_refuses_an_operation_is_not_judged() -> None:
    result = checked(lambda model: model.fc.register_full_backward_hook(look), Writing())
    (verdict,) = only(result, "full_backward").judged
    assert verdict.verdict == NOT_JUDGED
    assert "refuses the in-place operation" in verdict.why


def test_what_goes_in_is_held_to_what_it_was_where_it_is_written_to() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(inplace=True))
    result = checked(lambda model: [model[1].register_forward_pre_hook(look), model.register_forward_hook(look)], model)
    assert {verdict.verdict for hook in result.hooks for verdict in hook.judged} == {CONFORMS}


@FULL
def test_what_full_hooks_change_is_known_beside_others_too() -> None:
    def hooks(model: Any) -> list[Any]:
        return [model.register_forward_hook(look), model.register_full_backward_hook(look)]

    assert not checked(hooks).deviations  # the output is a view


def test_what_a_hook_keeps_is_told() -> None:
    """`fc` gives 3 rows of 3 numbers in float32; the graph holds the leaf at its end, which is the input's 3 of 2."""
    store: dict[str, Any] = {}
    hooks = {
        "with its graph": (lambda module, args, output: store.update(all=output), 36 + 24, True),
        "its memory alone": (lambda module, args, output: store.update(all=output.detach()[0]), 36, False),
        "a copy": (lambda module, args, output: store.update(all=output.detach().clone()), 0, False),
        "a parameter": (lambda module, args, output: store.update(all=module.weight), 0, False),
    }
    for hook, size, graph in hooks.values():
        report = only(checked(lambda model, hook=hook: model.fc.register_forward_hook(hook)), "forward")  # type: ignore[misc]
        assert (report.retained, report.graph) == (size, graph)
        said = f"{size} B of what it was given stay in memory{', with the graph behind it' if graph else ''}"
        assert (said in str(report)) is (size > 0)
        store.clear()


def test_what_torch_itself_keeps_is_no_hooks_doing() -> None:
    result = checked(of_many_kinds)
    assert not any(hook.retained or hook.graph for hook in result.hooks)


def test_a_hook_that_raises_is_told_with_its_line() -> None:
    def failing(*_: Any) -> None:
        raise ValueError("no hook today")

    result = checked(lambda model: model.fc.register_forward_hook(failing))
    (verdict,) = only(result, "forward").judged
    assert "ValueError: no hook today" in verdict.why
    assert "test_own_hooks.py" in verdict.why


def test_a_fault_of_torch_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    register = torch.Tensor.register_hook

    def faulty(self: Any, hook: Any) -> Any:
        return register(self, lambda gradient: hook(gradient * 2))

    monkeypatch.setattr(torch.Tensor, "register_hook", faulty)
    result = checked(of_many_kinds)
    wrong = {hook.kind for hook in result.hooks if any(v.verdict == NEW for v in hook.judged)}
    assert wrong >= {"tensor", "output_tensor"}
    assert result.deviations


@pytest.mark.skipif(RELEASE < (2, 0), reason="with_kwargs came with 2.0")
def test_options_of_a_registration_are_kept() -> None:
    def hooks(model: Any) -> list[Any]:
        first: list[str] = []

        def one(module: Any, args: Any, kwargs: Any) -> None:
            assert not first
            first.append("")

        return [
            model.fc.register_forward_pre_hook(look),
            model.fc.register_forward_pre_hook(one, with_kwargs=True, prepend=True),
        ]

    result = checked(hooks)
    assert {hook.kind: hook.called for hook in result.hooks} == {"forward_pre": 1, "forward_pre_kwargs": 1}


@FULL
def test_hooks_with_which_the_step_raises_are_no_success() -> None:
    """As a full backward hook under an in-place ReLU, which is documented, so that no clause is broken."""
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(inplace=True))
    result = checked(lambda model: model[0].register_full_backward_hook(look), model)
    assert result.raised.startswith("RuntimeError: Output 0 of BackwardHookFunction")
    assert not result.deviations
    assert "your hooks\n  with them the step raises RuntimeError: Output 0 of" in str(result)
    assert str(result).count("RuntimeError") == 1
    with pytest.raises(AssertionError, match="with them the step raises RuntimeError"):
        result.raise_if_deviating()


def test_a_hook_that_raises_is_no_success() -> None:
    def fail(*_: Any) -> None:
        raise ValueError("no such key")

    assert checked(lambda model: model.fc.register_forward_hook(fail)).raised.startswith("ValueError: no such key")
    assert checked(lambda model: model.fc.register_forward_hook(look)).raised == ""


def test_what_a_hook_keeps_of_the_output_is_no_fault_of_torch() -> None:
    store: list[Any] = []
    result = checked(lambda model: model.register_forward_hook(lambda module, args, output: store.append(output)))
    assert not result.deviations
    assert "of what it was given stay in memory, with the graph behind it" in str(result.hooks[0])


def test_hooks_on_forward_are_told_nothing_of_gradients() -> None:
    result = checked(lambda model: model.fc.register_forward_hook(look))
    assert not [remark for remark in result.remarks if "grad_input" in remark.text]


def test_what_a_hook_returns_may_make_the_step_raise() -> None:
    result = checked(lambda model: model.fc.register_forward_hook(lambda module, args, output: "no tensor"))
    assert "returned something at one call, with which the step raises TypeError" in str(result.hooks[0])


@pytest.mark.parametrize(
    ("text", "hooks"),
    [
        ("registers no hook on the model", lambda model: None),
        (r"hooks\(model\) raises (Module)?AttributeError", lambda model: model.nothing.register_forward_hook(look)),
    ],
)
def test_bad_input_gets_one_line(text: str, hooks: Any) -> None:
    with pytest.raises(HookcheckError, match=text):
        checked(hooks)
    assert torch.Tensor.register_hook.__module__.startswith("torch")
