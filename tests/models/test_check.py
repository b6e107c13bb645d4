"""Does check_module say what is true of a model, find what is planted, refuse what it cannot run, and put all back?"""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.modules import module as torch_module

import hookcheck
from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import KINDS
from hookcheck.models.result import CONFORMS, KNOWN, NEW, NOT_JUDGED, NOT_REACHED, ModelCheck
from hookcheck.releases.numbers import release

pytestmark = pytest.mark.filterwarnings("ignore")
RELEASE = release(torch.__version__)
FULL = pytest.mark.skipif(RELEASE < (1, 8), reason="full backward hooks came with 1.8")


class Scaled(nn.Module):
    def forward(self, items: list[Any], scale: Any) -> Any:
        return items[0] * scale + items[1]


class Many(nn.Module):
    """One of everything that is worth a sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Linear(3, 3)
        self.conv = nn.Conv1d(1, 2, 1)
        self.scaled = Scaled()
        self.by_weight = nn.Linear(3, 3)
        self.dead = nn.Linear(2, 2)
        self.direct = nn.Linear(3, 3)
        self.relu = nn.ReLU(inplace=True)
        self.norm = nn.BatchNorm1d(3)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Any) -> Any:
        h = self.norm(self.shared(self.shared(x)))
        h = self.scaled([h, h * 2], scale=h.square().sum())
        h = self.drop(self.relu(h))
        return h @ self.by_weight.weight + self.conv(h[:, None]).sum(1) + self.direct.forward(x)


def many() -> tuple[nn.Module, Any]:
    torch.manual_seed(1)
    return Many(), torch.randn(2, 3)


@pytest.fixture(scope="module")
def result() -> ModelCheck:
    return hookcheck.check_module(*many())


class Dropping(nn.Module):
    """Nobody keeps what one of its modules gives, so its part of the graph is gone before backward."""

    def __init__(self) -> None:
        super().__init__()
        self.aside, self.head = nn.Linear(2, 1), nn.Linear(2, 2)

    def forward(self, x: Any) -> Any:
        self.aside(x)
        return self.head(x)


@FULL
def test_an_output_that_nobody_keeps() -> None:
    result = hookcheck.check_module(Dropping(), torch.randn(3, 2, requires_grad=True), kinds=["full_backward"])
    assert {verdict.verdict for verdict in result.of("head")} == {CONFORMS}
    assert modules_of(result, "backward does not come by") == [("aside",)]


@FULL
def test_what_full_hooks_need_to_fire() -> None:
    result = hookcheck.check_module(nn.Linear(2, 2), torch.randn(3, 2), kinds=["full_backward"])
    assert bool(modules_of(result, "then fires when the gradients of the outputs")) is (RELEASE >= (1, 9))
    assert bool(modules_of(result, "torch 1.8 calls full hooks")) is (RELEASE < (1, 9))


def modules_of(result: ModelCheck, text: str) -> list[tuple[str, ...]]:
    return [remark.modules for remark in result.remarks if text in remark.text]


def test_nothing_new_deviates(result: ModelCheck) -> None:
    result.raise_if_deviating()
    assert not result.deviations
    assert {v.verdict for v in result.judged} >= {CONFORMS, KNOWN, NOT_REACHED}
    assert {v.verdict for v in result.of("dead")} == {NOT_REACHED}


@FULL
def test_full_hooks_conform_where_they_can(result: ModelCheck) -> None:
    fired = 2 if RELEASE >= (1, 9) else 1  # in 1.8 not without an input that requires grad
    assert [v.verdict for v in result.of("shared", "full_backward") if v.clause == "GO-01"] == [CONFORMS] * fired
    assert {v.verdict for v in result.of("relu", "full_backward")} == {NOT_JUDGED}
    assert modules_of(result, "its forward writes to its input 0") == [("relu",)]
    assert modules_of(result, "its output 0 is written to afterwards") == [("scaled",)]
    lines = [str(r) for r in result.remarks if "test_check.py" in str(r) and "self.relu(h)" in str(r)]
    assert bool(lines) is (RELEASE >= (1, 9))  # 1.8 lets it through


def test_sentences_name_the_modules(result: ModelCheck) -> None:
    assert modules_of(result, "their parameters are used") == [("by_weight",)]
    assert modules_of(result, "forward is called itself") == [("direct",)]
    assert modules_of(result, "nothing shows that this step uses them") == [("dead",)]
    assert modules_of(result, "2 calls in one forward") == [("shared",)]
    none = [("", "shared")] if RELEASE >= (1, 9) else []
    assert modules_of(result, "is None since no positional argument requires grad") == none
    assert modules_of(result, "passed by keyword") == [("scaled",)]
    assert modules_of(result, "inside of a list") == [("scaled",)]
    legacy = [r for r in result.remarks if r.topic == "what legacy hooks report instead"]
    assert any("conv" in r.modules and r.kinds == ("backward",) for r in legacy)


def test_the_costliest_comes_first(result: ModelCheck) -> None:
    topics = list(dict.fromkeys(remark.topic for remark in result.remarks))
    since = {
        "hooks on these modules are never called": True,
        "modules that are called several times": True,
        "hook kinds that do not fire": (1, 8) <= RELEASE < (1, 9),  # a full hook where no input requires grad
        "gradients that hooks get as None": True,
        "tensors that hooks on backward never see": True,
        "in-place operations that full backward hooks refuse": RELEASE >= (1, 8),
        "what legacy hooks report instead": True,
        "what changes because a hook is there": RELEASE >= (1, 8),  # legacy hooks warn
    }
    assert topics == [topic for topic, there in since.items() if there]


def test_what_is_known_has_reason_and_link(result: ModelCheck) -> None:
    known = [verdict for verdict in result.judged if verdict.verdict == KNOWN]
    assert {"backward", *(["full_backward"] if RELEASE >= (2, 8) else [])} <= {verdict.kind for verdict in known}
    assert all(verdict.why and verdict.link.startswith("https://") for verdict in known)
    with pytest.raises(AssertionError, match="extra entries"):
        result.raise_if_deviating(known=True)


def test_it_can_be_read_as_text_json_and_html(result: ModelCheck) -> None:
    assert "Many on cpu" in str(result)
    assert max(map(len, str(result).splitlines())) <= 120
    assert len(json.loads(result.to_json())["judged"]) == len(result.judged)
    assert "<table>" in result._repr_html_()


def state(model: nn.Module) -> dict[str, Any]:
    return {
        **{name: tensor.clone() for name, tensor in model.state_dict().items()},
        "grads": [parameter.grad for parameter in model.parameters()],
        "training": [module.training for module in model.modules()],
        "hooks": [len(module._forward_hooks) + len(module._backward_hooks) for module in model.modules()],
        "full": [getattr(module, "_is_full_backward_hook", None) for module in model.modules()],
        "attributes": [sorted(vars(module)) for module in model.modules()],
        "global": len(torch_module._global_forward_hooks),
        "random": torch.get_rng_state(),
        "grad mode": torch.is_grad_enabled(),
    }


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    return bool(one == other)


class Failing(Many):
    def forward(self, x: Any) -> Any:
        self.stashed = super().forward(x)
        self.norm.num_batches_tracked.add_(5)
        if self.shared._forward_hooks:
            raise ValueError("hooks are not welcome")
        return self.stashed


@pytest.mark.parametrize("make", [Many, Failing])
def test_all_is_as_before(make: type[nn.Module]) -> None:
    torch.manual_seed(0)
    model, x = make(), torch.randn(2, 3)
    model.drop.eval()
    model.shared.weight.grad = torch.ones(3, 3)
    model.conv.register_forward_hook(lambda module, args, output: None)
    with torch.no_grad():
        before = state(model)
        hookcheck.check_module(model, x)
        after = state(model)
    assert before.keys() == after.keys()
    assert [name for name in before if not same(before[name], after[name])] == []
    assert model.shared.weight.grad is before["grads"][0]
    assert not any(parameter._backward_hooks for parameter in model.parameters())


@pytest.mark.parametrize(
    "fault", ["forward", *(pytest.param(name, marks=FULL) for name in ("gradient", "twice", "never"))]
)
def test_a_fault_of_torch_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted into torch in memory: what it hands to hooks, and how often it calls them."""
    if fault == "forward":
        call = nn.Linear.forward
        monkeypatch.setattr(nn.Linear, "forward", lambda self, x: call(self, x) * (1 + bool(self._forward_hooks)))
    elif fault == "never":
        monkeypatch.setattr(torch.utils.hooks.BackwardHook, "setup_output_hook", lambda self, args: args)
    else:
        calls: Any = {
            "gradient": lambda hook: lambda module, inputs, outputs: hook(module, inputs, (2 * outputs[0],)),
            "twice": lambda hook: lambda *given: (hook(*given), hook(*given))[0],
        }[fault]
        right = torch.utils.hooks.BackwardHook.__init__

        def begin(self: Any, module: Any, hooks: Any, *rest: Any) -> None:
            right(self, module, [*map(calls, hooks)], *rest)

        monkeypatch.setattr(torch.utils.hooks.BackwardHook, "__init__", begin)
    model, x = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2)), torch.randn(2, 3, requires_grad=True)
    kinds = ["forward"] if fault == "forward" else ["full_backward"]
    check = hookcheck.check_module(model, x, kinds=kinds)
    assert {v.clause for v in check.deviations} >= {
        "gradient": {"GO-01"}, "twice": {"BW-05"}, "never": {"BW-02"}, "forward": {"OB-02"},
    }[fault]  # fmt: skip
    with pytest.raises(AssertionError, match=r"(full_backward|forward) on"):
        check.raise_if_deviating()


class Unsteady(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.numbers = iter(range(1, 100))

    def forward(self, x: Any) -> Any:
        return self.layer(x) * next(self.numbers)


@FULL
def test_a_model_that_differs_from_run_to_run_is_no_fault() -> None:
    check = hookcheck.check_module(Unsteady(), torch.randn(2, 2), kinds=["full_backward", "forward"])
    assert not check.deviations
    assert modules_of(check, "two steps from one random state differ")


@FULL
def test_modules_are_chosen_by_pattern() -> None:
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.Tanh()), nn.Linear(2, 2))
    check = hookcheck.check_module(model, torch.randn(1, 2), kinds=["full_backward"], modules="0.*")
    assert {v.module for v in check.judged if v.call is not None} == {"0.0", "0.1"}
    with pytest.raises(HookcheckError, match=r"no module's path matches 'encoder\.\*'"):
        hookcheck.check_module(model, torch.randn(1, 2), modules="encoder.*")


def test_progress_is_told() -> None:
    steps: list[tuple[int, int, str]] = []
    hookcheck.check_module(nn.Linear(1, 1), torch.ones(1, 1), kinds=["forward"], progress=lambda *s: steps.append(s))
    assert [done for done, _, _ in steps] == list(range(7))
    assert {total for _, total, _ in steps} == {6}
    assert steps[-1][2] == "done"


def test_a_model_without_parameters_whose_input_needs_no_grad() -> None:
    check = hookcheck.check_module(nn.Tanh(), torch.ones(2))
    assert modules_of(check, "nothing that the model returns requires grad")
    assert not check.deviations


@FULL
def test_hooks_that_are_there_already_stay_and_take_part() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    model[0].register_forward_hook(lambda module, args, output: output * 2)
    check = hookcheck.check_module(model, torch.randn(2, 2, requires_grad=True), kinds=["full_backward", "forward"])
    assert not check.deviations


@pytest.mark.parametrize("kind", [k.name for k in KINDS.values() if k.observes and k.scope != "run"])
def test_every_kind_conforms_on_a_plain_model(kind: str) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Sequential(nn.Linear(3, 3), nn.Sigmoid()))
    try:
        check = hookcheck.check_module(model, torch.randn(2, 2, requires_grad=True), kinds=[kind])
    except HookcheckError as error:
        pytest.skip(str(error))
    assert check.judged
    assert not [verdict for verdict in check.judged if verdict.verdict == NEW]


class Mapped(nn.Module):
    """Calls a module inside of vmap."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return torch.vmap(self.layer)(x)


@pytest.mark.skipif(RELEASE < (2, 0), reason="vmap became public with 2.0")
def test_why_nothing_fires_inside_of_vmap_is_told() -> None:
    check = hookcheck.check_module(Mapped(), torch.randn(2, 3), kinds=["full_backward"])
    assert not check.deviations
    assert modules_of(check, "as nothing inside of torch.vmap does") == [("layer",)]


class Residual(nn.Module):
    """Adds in place to what its block gives, which is what the last layer of the block gives."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Tanh(), nn.Linear(2, 2)))

    def forward(self, x: Any) -> Any:
        h = self.block(x)
        h += x
        return h


@FULL
def test_a_write_reaches_all_that_hand_the_tensor_on() -> None:
    x = torch.randn(2, 2, requires_grad=True)
    check = hookcheck.check_module(Residual(), x, kinds=["full_backward"])
    assert not check.deviations
    assert modules_of(check, "its output 0 is written to afterwards") == [("block", "block.1", "block.1.1")]


class Scores(nn.Module):
    """Gives, beside its result, a tensor that it has used itself."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        bias = self.bias(x)
        return x * bias, bias


class Handing(nn.Module):
    """Hands on what a module inside of it gives."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = Scores()

    def forward(self, x: Any) -> Any:
        return self.scores(x)


class Blocks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Handing()

    def forward(self, x: Any) -> Any:
        result, bias = self.first(x)
        return result + bias.exp()


@FULL
def test_the_gradient_of_an_output_that_is_used_inside_as_well_is_not_foretold() -> None:
    result = hookcheck.check_module(Blocks(), torch.randn(2, 3), kinds=["output_tensor", "full_backward"])
    assert not result.deviations
    assert {v.verdict for v in result.judged if v.clause == "TN-03"} == {CONFORMS}


@pytest.mark.skipif(RELEASE < (1, 9), reason="batch_first came with 1.9")
def test_another_rounding_by_the_order_of_sums_is_known() -> None:
    """Under full hooks attention projects query, key and value one by one, and adds their gradients up otherwise."""
    torch.manual_seed(0)
    model, x = nn.Transformer(64, 4, 1, 1, 64, batch_first=True), torch.randn(2, 12, 64)
    result = hookcheck.check_module(model, (x, x * 2), kinds=["full_backward"])
    assert not result.deviations
    assert "full_backward" in {v.kind for v in result.judged if v.gap == "other rounding" and v.verdict == KNOWN}


class Refusing(nn.Module):
    """Takes no tensor that an identity has given."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        if x.grad_fn is not None:
            raise TypeError("a leaf, please")
        return self.layer(x)


@FULL
def test_where_a_step_with_cuts_raises_no_backward_hook_is_judged() -> None:
    x = torch.randn(2, 3, requires_grad=True)
    result = hookcheck.check_module(Refusing(), x, kinds=["forward", "full_backward"])
    assert {v.verdict for v in result.judged if v.kind == "forward"} == {CONFORMS}  # nothing is cut for them
    assert {v.why for v in result.judged if v.verdict == NOT_JUDGED} == {
        "a step with cuts raises TypeError: a leaf, please"
    }
