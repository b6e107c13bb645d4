"""Does a context that changes results fail, does one that changes nothing pass, and is all put back?"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import hookcheck
from hookcheck.errors import HookcheckError
from hookcheck.models.same_under import CONTEXTS, NEEDS

OFFERED = [name for name in CONTEXTS if all(hasattr(torch, part) for part in NEEDS.get(name, ()))]


def network(*more: nn.Module) -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), *more, nn.Linear(3, 1))


def x() -> Any:
    return torch.tensor([[0.5, -1.0]], requires_grad=True)


@pytest.mark.parametrize("context", OFFERED)
def test_a_plain_network_is_the_same(context: str) -> None:
    hookcheck.same_under([context])(network(), x())


def in_grad_mode(x: Any) -> Any:
    return 2 * x if torch.is_grad_enabled() else 3 * x


class Counting(nn.Module):
    """Doubles in training, and counts its calls in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return 2 * x if self.training else x


def test_outputs_that_differ_are_named() -> None:
    with pytest.raises(AssertionError, match="no_grad: output differs by 1, of which rounding explains"):
        hookcheck.same_under(["no_grad"])(in_grad_mode, x())
    with pytest.raises(AssertionError, match="eval: output differs"):
        hookcheck.same_under("eval")(Counting(), x())


@pytest.mark.skipif("checkpoint_reentrant" not in OFFERED, reason="this torch has no choice of checkpoints")
def test_gradients_that_are_absent_are_named() -> None:
    """A reentrant checkpoint none of whose inputs requires grad gives none to the parameters."""
    with pytest.raises(AssertionError, match=r"checkpoint_reentrant: gradient of 0\.weight is None, not a tensor"):
        hookcheck.same_under(["checkpoint_reentrant"])(network(), x().detach())


def test_a_hook_that_scales_in_one_context_only_is_found() -> None:
    net = network()
    net[0].register_forward_hook(lambda module, args, out: out if torch.is_grad_enabled() else 2 * out)
    with pytest.raises(AssertionError, match="no_grad: output differs"):
        hookcheck.same_under(["no_grad"])(net, x())


def test_all_is_as_before_afterwards() -> None:
    net, given = Counting(), x()
    given.grad = gradient = torch.ones(1, 2)
    state = torch.random.get_rng_state()
    with pytest.raises(AssertionError):
        hookcheck.same_under(["eval"])(net, given)
    assert net.training
    assert not net.calls
    assert given.grad is gradient
    assert torch.equal(torch.random.get_rng_state(), state)


def test_dropout_has_the_same_random_state() -> None:
    hookcheck.same_under(["no_grad"])(network(nn.Dropout(0.5)), x())


@pytest.mark.parametrize(
    ("contexts", "function", "said"),
    [
        (["sideways"], in_grad_mode, "unknown context 'sideways'"),
        (["no_grad"], 3, "needs a function or module"),
        (["eval"], in_grad_mode, "eval is for modules"),
        (["no_grad"], lambda x: None, "returns no tensor"),
        (["no_grad"], nn.DataParallel(nn.Linear(1, 1)), "pass what went into the DataParallel"),
        (["no_grad"], torch.jit.script(nn.Linear(1, 1)), "pass what went into the"),
    ],
)
def test_bad_input(contexts: list[str], function: Any, said: str) -> None:
    with pytest.raises(HookcheckError, match=said):
        hookcheck.same_under(contexts)(function, x())


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="older releases make no module on meta")
def test_meta_has_no_numbers() -> None:
    with pytest.raises(HookcheckError, match="on meta have no numbers"):
        hookcheck.same_under(["no_grad"])(nn.Linear(2, 2, device="meta"), x())


def test_names_that_are_not_offered_are_no_attributes() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        hookcheck.nothing  # noqa: B018
