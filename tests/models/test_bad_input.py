"""Does check_module refuse what it cannot run in one line that says what to do, and name what it cannot judge?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

import hookcheck
from hookcheck.errors import HookcheckError
from hookcheck.releases.numbers import release

pytestmark = pytest.mark.filterwarnings("ignore")
RELEASE = release(torch.__version__)


def linear() -> nn.Module:
    return nn.Linear(2, 2)


class Odd(nn.Module):
    def __init__(self, give: Any = None, error: Exception | None = None) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.give, self.error = give, error

    def forward(self, x: Any) -> Any:
        if self.error:
            raise self.error
        return self.give or self.layer(x)


def in_place() -> nn.Module:
    model = linear()
    model.compile(backend="eager")
    return model


def bad() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    yield "needs an nn.Module, not function", lambda: linear, {}
    yield (
        r"the model raises without any hook.*ValueError: no.*test_bad_input\.py",
        lambda: Odd(error=ValueError("no")),
        {},
    )
    yield "the model returns no tensor.* but str", lambda: Odd(give="text"), {}
    yield "before torch.jit", lambda: torch.jit.script(linear()), {}
    yield "pass model.module", lambda: nn.DataParallel(linear()), {}
    yield "loss must give a tensor of one number", linear, {"loss": lambda out: out}
    yield "loss must give a tensor of one number", linear, {"loss": lambda out: 1.0}
    yield "the loss requires no grad", linear, {"loss": lambda out: out.detach().sum()}
    yield (
        "does not depend on what the model returns",
        linear,
        {"loss": lambda out: torch.ones(1, requires_grad=True).sum()},
    )
    yield "loss is a function from the output", linear, {"loss": "mse"}
    yield "no module's path matches 'encoder.*'; there are no sub-modules", linear, {"modules": "encoder.*"}
    yield "no module's path matches 'encoder.*'; there are layer$", Odd, {"modules": "encoder.*"}
    for seed in ("0", 1.5, None, -1, 2**63):
        yield f"seed is a whole number from 0 .*, not {seed!r}", linear, {"seed": seed}
    yield "unknown hook kind 'full'", linear, {"kinds": ["full"]}
    yield "hooks of kind acting_forward are not for this", linear, {"kinds": ["acting_forward"]}
    yield "no hook kind is named", linear, {"kinds": []}
    if hasattr(nn, "LazyLinear"):
        yield "lazy parameters", lambda: nn.LazyLinear(2), {}
    if RELEASE >= (2, 2):
        yield "a compiled model", lambda: torch.compile(linear(), backend="eager"), {}
        yield "the model is compiled", in_place, {}
        yield "0 is compiled", lambda: nn.Sequential(torch.compile(linear(), backend="eager")), {}
    if RELEASE >= (2, 0):
        yield "tensors on meta", lambda: linear().to("meta"), {}


@pytest.mark.parametrize(("text", "make", "options"), bad())
def test_bad_input_gets_one_line(text: str, make: Any, options: dict[str, Any]) -> None:
    with pytest.raises(HookcheckError, match=text) as caught:
        hookcheck.check_module(make(), torch.ones(1, 2), **options)
    assert "\n" not in str(caught.value)


class Named(nn.Module):
    def forward(self, items: Any) -> Any:
        return items["x"] * 2 if isinstance(items, dict) else torch.ones(1) * items


@pytest.mark.parametrize("argument", [3, {"x": torch.ones(1, requires_grad=True)}])
def test_what_is_no_tuple_is_the_only_argument(argument: Any) -> None:
    assert hookcheck.check_module(Named(), argument, kinds=["forward"]).calls == {"": 1}


@pytest.mark.skipif(RELEASE < (1, 8), reason="full backward hooks came with 1.8")
@pytest.mark.parametrize("there", ["register_backward_hook", "register_full_backward_hook"])
def test_hooks_that_torch_allows_no_others_beside_are_named(there: str) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    getattr(model[0], there)(lambda *arguments: None)
    result = hookcheck.check_module(model, torch.randn(2, 2), kinds=["full_backward", "backward"])
    assert not result.deviations
    other = "full_backward" if there == "register_backward_hook" else "backward"
    assert [v.kind for v in result.judged if "of the other kind is there already" in v.why] == [other]
    assert {v.module for v in result.judged if v.kind == other and v.clause and v.module} == {"1"}
    assert not hookcheck.check_module(model[0], torch.randn(2, 2), kinds=[other]).deviations


def test_a_loss_that_raises_is_named() -> None:
    with pytest.raises(HookcheckError, match=r"^the loss, or backward from it, raises without any hook.*KeyError"):
        hookcheck.check_module(nn.Linear(1, 1), torch.ones(1, 1), loss=lambda output: {}["loss"])
