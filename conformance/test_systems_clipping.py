"""Do hooks on parameters clip gradients as clamping them after backward does? A worked program, and where they differ.

A hook on a parameter gets the gradient that one backward has for it: the sum over all its uses. So of a parameter that
is used twice the clamp is that of the sum, as it is after backward. Of several backward passes that are collected in
``.grad``, the hooks clamp each, and what is collected may leave the range.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from systems.chains import PERCEPTRON, TIED, Chain, gradients
from systems.gradient_clipper import GradientClipper, Tied, run
from systems.side_by_side import assert_same, differing
from torch import nn

from hookcheck.oracle.tolerance import assert_close, close
from hookcheck.probe.state import preserved
from hookcheck.topology.values import draw

LOW, HIGH = -2.0, 1.5
WEIGHTS = np.array([[3.0, -2.0, 1.0]] * 2)
"""What the outputs (2, 3) are weighted with in the loss: the cotangent."""
DATA = [draw(0, "first", (2, 3)), draw(0, "second", (2, 3))]

dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])
nets = pytest.mark.parametrize("chain", [PERCEPTRON, TIED], ids=["each-used-once", "one-used-twice"])


@pytest.fixture(autouse=True)
def _unchanged_process() -> Iterator[None]:
    with preserved():
        yield


def network(chain: Chain, dtype: str) -> tuple[nn.Module, dict[str, Any]]:
    """The net that a chain computes, and the numbers of its parameters."""
    net: nn.Module = Tied()
    if chain is PERCEPTRON:
        net = nn.Sequential()
        for name, layer in (("fc1", nn.Linear(3, 4)), ("sigmoid", nn.Sigmoid()), ("fc2", nn.Linear(4, 3))):
            net.add_module(name, layer)
    numbers = {name: draw(0, name, tuple(p.shape)) for name, p in net.named_parameters()}
    net.load_state_dict({name: torch.from_numpy(array) for name, array in numbers.items()})
    return net.to(getattr(torch, dtype)), numbers


def analytic(chain: Chain, numbers: dict[str, Any]) -> list[dict[str, Any]]:
    """The gradients of each backward by itself."""
    return [gradients(chain, numbers, x, WEIGHTS) for x in DATA]


def collected(passes: list[dict[str, Any]], low: float = -np.inf, high: float = np.inf) -> dict[Any, Any]:
    """What ``.grad`` must be after each backward, where each is clamped before it is collected."""
    total = dict.fromkeys(passes[0], 0.0)
    found = {}
    for n, grads in enumerate(passes):
        for name, gradient in grads.items():
            total[name] = total[name] + np.clip(gradient, low, high)
            found[name, ".grad", n] = (total[name],)
    return found


def seen(net: nn.Module, dtype: str, bounds: Any = (LOW, HIGH)) -> Any:
    """What the program records."""
    of_dtype = getattr(torch, dtype)
    data = [torch.tensor(x, dtype=of_dtype) for x in DATA]
    return run(net, data, torch.tensor(WEIGHTS, dtype=of_dtype), bounds)


@dtypes
@nets
def test_every_grad_is_the_sum_of_clamps(chain: Chain, dtype: str) -> None:
    """Each ``.grad`` is the clamp of the analytic gradient, or the sum of those of two passes."""
    net, numbers = network(chain, dtype)
    assert_same(collected(analytic(chain, numbers), LOW, HIGH), seen(net, dtype), dtype)


@dtypes
@nets
def test_nothing_is_clamped_once_the_hooks_are_off(chain: Chain, dtype: str) -> None:
    """After ``remove()`` each ``.grad`` is the analytic gradient."""
    net, numbers = network(chain, dtype)
    GradientClipper(net, LOW, HIGH).remove()
    assert_same(collected(analytic(chain, numbers)), seen(net, dtype, bounds=None), dtype)


@nets
def test_the_range_cuts_some_numbers_and_not_others(chain: Chain) -> None:
    """The numbers above tell a clamp from none, from one at the wrong end, and from a constant."""
    _, numbers = network(chain, "float64")
    for grads in analytic(chain, numbers):
        everything = np.concatenate([gradient.ravel() for gradient in grads.values()])
        for cut in (everything < LOW, everything > HIGH, (everything > LOW) & (everything < HIGH)):
            assert cut.any()


def test_a_parameter_that_is_used_twice_is_clamped_once() -> None:
    """The clamp is that of the sum of both uses, as after backward; clamping each use would give something else."""
    net, numbers = network(TIED, "float64")
    one, _ = analytic(TIED, numbers)
    apart = tuple(zip(("first", "sigmoid", "second"), (step for _, step in TIED)))
    copies = {f"{use}.{key}": numbers[f"fc.{key}"] for use in ("first", "second") for key in ("weight", "bias")}
    uses = gradients(apart, copies, DATA[0], WEIGHTS)
    found = seen(net, "float64")
    for name in ("weight", "bias"):
        first, second = uses[f"first.{name}"], uses[f"second.{name}"]
        assert_close(first + second, one[f"fc.{name}"])
        each = np.clip(first, LOW, HIGH) + np.clip(second, LOW, HIGH)
        assert_close(found[f"fc.{name}", ".grad", 0][0], np.clip(first + second, LOW, HIGH))
        assert not close(found[f"fc.{name}", ".grad", 0][0], each, "float32", "cpu")  # no rounding, even of float32


@nets
def test_two_passes_differ_from_clamping_afterwards(chain: Chain) -> None:
    """What two passes have collected leaves the range, which clamping after backward would not let it."""
    net, numbers = network(chain, "float64")
    after = {what: (np.clip(array, LOW, HIGH),) for what, (array,) in collected(analytic(chain, numbers)).items()}
    wrong = differing(after, seen(net, "float64"), "float64")
    assert wrong == [what for what in after if what[2] == 1]


@pytest.mark.parametrize("fault", ["ignores", "loses", "repeats"])
def test_a_broken_torch_is_reported(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch that ignores what a hook on a tensor returns, calls only one of them, or adds its result up twice."""
    sound = torch.Tensor.register_hook
    taken: list[Any] = []

    def register(self: torch.Tensor, hook: Any) -> Any:
        taken.append(hook)
        if fault == "loses" and len(taken) > 1:
            return sound(self, lambda grad: None)
        return sound(self, lambda grad: None if fault == "ignores" else (1 + (fault == "repeats")) * hook(grad))

    monkeypatch.setattr(torch.Tensor, "register_hook", register)
    net, numbers = network(PERCEPTRON, "float64")
    right = collected(analytic(PERCEPTRON, numbers), LOW, HIGH)
    wrong = differing(right, seen(net, "float64"), "float64")
    names = [name for name in numbers if fault != "loses" or name != next(iter(numbers))]
    assert {name for name, _, _ in wrong} == set(names)
