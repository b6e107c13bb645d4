"""The buffers of BatchNorm: what a forward in training mode leaves there is what the next one in eval mode uses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hookcheck.oracle.expected import Expected
from hookcheck.oracle.tolerance import assert_close, close
from hookcheck.topology.build import build
from hookcheck.topology.layers.batch_norm import BatchNorm1d
from hookcheck.topology.model import Backward, Call, Composite, Input, Sequential, Topology, Train
from hookcheck.topology.tree import Ref

X, Y, V = Ref("x"), Ref("y"), Ref("v")
THREE_CALLS = (
    Call("a", "", (X,)),
    Call("b", "", (Ref("w"),)),
    Train("", False),
    Call("y", "", (X,)),
    Backward((Y,), (V,)),
)
INPUTS = (Input("x", (4, 1), True), Input("w", (4, 1)), Input("v", (4, 1)))
NUMBERS = {
    "x": np.array([[1.0], [3.0], [5.0], [7.0]]),
    "w": np.array([[0.0], [0.0], [8.0], [8.0]]),
    "v": np.array([[1.0], [2.0], [3.0], [4.0]]),
    "weight": np.array([2.0]),
    "bias": np.array([1.0]),
}


@pytest.mark.parametrize(("momentum", "mean", "var"), [(0.5, 3.0, 37 / 3), (None, 4.0, 14.0)])
def test_train_train_eval_by_hand(momentum: float | None, mean: float, var: float) -> None:
    # x has mean 4 and unbiased variance 20/3, w mean 4 and 64/3.
    # momentum 1/2: mean 0, 2, 3; variance 1, 23/6, (23/6 + 64/3)/2 = 151/12.
    # None, thus the mean over both: mean 4, variance (20/3 + 64/3)/2 = 14.
    var = 151 / 12 if momentum else var
    layer = BatchNorm1d(1, eps=0.0, momentum=momentum)
    e = Expected(Topology(layer, INPUTS, THREE_CALLS), NUMBERS)
    r = 1 / np.sqrt(var)
    standard = (NUMBERS["x"] - mean) * r
    assert_close(e.trace.names["y"].array, 2 * standard + 1)
    # In eval the statistics are constants: dx = v γ r, dγ = Σ v x̂, dβ = Σ v.
    assert_close(e.leaf_gradients["x"], 2 * r * NUMBERS["v"])
    assert_close(e.leaf_gradients["weight"], (NUMBERS["v"] * standard).sum(0))
    assert e.leaf_gradients["bias"].tolist() == [10]


TRAINED_IN_BETWEEN = (
    Call("a", "", (X,)),
    Train("", False),
    Call("b", "", (Ref("w"),)),
    Train("0", True),
    Call("c", "", (Ref("w"),)),
    Train("", False),
    Call("y", "", (X,)),
    Backward((Y,), (V,)),
)
"""The forward in eval mode between is no part of the backward, and leaves the buffers as they were."""


@pytest.mark.parametrize("momentum", [0.1, 0.5, None])
@pytest.mark.parametrize("track", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("main", [THREE_CALLS, TRAINED_IN_BETWEEN])
def test_as_torch_has_it(momentum: float | None, track: bool, training: bool, main: tuple[object, ...]) -> None:
    net = Sequential((BatchNorm1d(1, 1.0, momentum, track_running_stats=track),))
    topology = Topology(net, INPUTS, main, training=training)  # type: ignore[arg-type]
    numbers = {f"0.{name}" if name in ("weight", "bias") else name: array for name, array in NUMBERS.items()}
    built = build(topology, numbers)
    names = built.run()
    e = Expected(topology, numbers)
    for name in ("a", "b", "y"):
        assert_close(names[name].detach().numpy(), e.trace.names[name].array)
    for name, leaf in (*built.parameters.items(), ("x", built.inputs["x"])):
        assert leaf.grad is not None
        assert_close(leaf.grad.numpy(), e.leaf_gradients[name])


def test_a_layer_that_is_tied_has_one_set_of_buffers() -> None:
    layer = BatchNorm1d(1, momentum=0.5)
    body = (Call("h", "p", (X,)), Call("z", "q", (Ref("h"),)))
    module = Composite((("p", layer), ("q", layer)), ("x",), body, Ref("z"))
    untied = Topology(module, INPUTS, (Call("y", "", (X,)), Train("", False), Call("e", "p", (X,))))
    numbers = {f"{path}.{name}": NUMBERS[name] for path in ("p", "q") for name in ("weight", "bias")}
    given = {**{name: NUMBERS[name] for name in ("x", "w", "v")}, **numbers}
    mean_of = {}
    for ties in ((), (("q", "p"),)):
        topology = replace(untied, ties=ties)
        held = {name: array for name, array in given.items() if not (ties and name.startswith("q."))}
        e = Expected(topology, held)
        mean_of[ties] = e.trace.names["e"].array
        assert_close(build(topology, held).run()["e"].detach().numpy(), mean_of[ties])
    assert not close(mean_of[()], mean_of[(("q", "p"),)], "float32", "cpu")  # no rounding, even of float32
