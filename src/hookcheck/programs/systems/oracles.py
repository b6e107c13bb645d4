"""What must the worked programs see? Each is a topology, so the oracle says it: in NumPy, without torch's autograd.

Beside that stands what the legacy hook really is, a hook on the grad_fn of the module's first output, where that is the
same in every release of torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hookcheck.oracle.due import Firing
from hookcheck.oracle.expected import Expected
from hookcheck.topology.layers.activation import Sigmoid
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Apply, Backward, Call, Composite, Input, Topology
from hookcheck.topology.ops import Mean
from hookcheck.topology.primitive import Array, Gradients, Layer, Shape
from hookcheck.topology.tree import Ref

Numbers = dict[tuple[str, str, int], tuple[Any, ...]]
"""What there is to see, by (subject, what, how manieth time): one array for each tensor."""


@dataclass(frozen=True)
class OneBiasLinear(Linear):
    """``Linear`` with one bias for all rows of its weight: ``y = x Wᵀ + b`` with ``b`` of shape (1,)."""

    def parameters(self) -> dict[str, Shape]:
        """``weight`` (out_features, in_features) and ``bias`` (1,)."""
        return {**super().parameters(), "bias": (1,)}

    def pull(self, v: Array, x: Array, weight: Array, bias: Array | float = 0.0) -> Gradients:
        """``dx`` of ``x``'s shape; ``dW`` of the weight's; ``db`` (1,)."""
        dx, gradients = super().pull(v, x, weight, bias)
        # The one number is the bias of every row, so its gradient is the sum of the gradients of the rows' biases.
        return dx, {**gradients, "bias": gradients["bias"].sum(keepdims=True)}


def sigmoid_net(layers: Mapping[str, Mapping[str, Any]], data: Any, cotangent: Any) -> Expected:
    """``fc1``, sigmoid, ``fc2``, sigmoid on ``data`` (2,) or (N, 2), with two backward passes from ``cotangent``.

    ``layers`` holds ``weight`` (2, 2) and ``bias`` (1,) of ``fc1`` and of ``fc2``.
    """
    parameters = {f"{name}.{key}": np.array(number) for name, of in layers.items() for key, number in of.items()}
    inputs = {"data": np.array(data), "cotangent": np.array(cotangent)}
    fc, sigmoid = OneBiasLinear(2, 2), Sigmoid()
    topology = Topology(
        _chain({"fc1": fc, "sigmoid1": sigmoid, "fc2": fc, "sigmoid2": sigmoid}),
        (Input("data", inputs["data"].shape, True), Input("cotangent", inputs["cotangent"].shape)),
        (
            Call("out", "", (Ref("data"),)),
            Backward((Ref("out"),), (Ref("cotangent"),), retain_graph=True),
            Backward((Ref("out"),), (Ref("cotangent"),), retain_graph=True),
        ),
    )
    return Expected(topology, {**parameters, **inputs})


def linear_chain(parameters: Mapping[str, Any], inputs: Iterable[Any]) -> Expected:
    """Linear layers one after another, run forward and from the mean backward on each of ``inputs`` (N, in_features).

    ``parameters`` holds ``<name>.weight`` and ``<name>.bias`` of each layer, in the order in which they are called.
    """
    arrays = {name: np.array(number, dtype=float) for name, number in parameters.items()}
    shapes = {name[: -len(".weight")]: w.shape for name, w in arrays.items() if name.endswith(".weight")}
    data = {f"x{n}": np.array(x, dtype=float) for n, x in enumerate(inputs)}
    main = [
        statement
        for n, name in enumerate(data)
        for statement in (
            Call(f"y{n}", "", (Ref(name),)),
            Apply(f"loss{n}", Mean(), (Ref(f"y{n}"),)),
            Backward((Ref(f"loss{n}"),)),
        )
    ]
    topology = Topology(
        _chain({name: Linear(columns, rows) for name, (rows, columns) in shapes.items()}),
        tuple(Input(name, x.shape, True) for name, x in data.items()),
        tuple(main),
    )
    return Expected(topology, {**arrays, **data})


def expectation(expected: Expected, legacy: bool = False) -> Numbers:
    """What the `two_layer_sigmoid` program must record; with ``legacy``, what it does with legacy hooks on a batch."""
    numbers: Numbers = {}
    for call in expected.trace.calls:
        if call.path:
            numbers[call.path, "input", call.number] = tuple(t.array for t in call.args if t)
            numbers[call.path, "output", call.number] = tuple(t.array for t in call.outputs if t)
    numbers["net", "output", 0] = (expected.trace.names["out"].array,)
    total: dict[str, Array] = {}
    for n, swept in enumerate(expected.plain):
        for firing in _firings(expected, n):
            numbers[firing.call.path, "grad_output", n] = firing.grad_output
            numbers[firing.call.path, "grad_input", n] = of_grad_fn(expected, firing) if legacy else firing.grad_input
        for name in ("data", *(name for name in swept.asked if name != "data" and isinstance(name, str))):
            total[name] = total.get(name, 0) + swept.asked[name]
            numbers[name, ".grad", n] = (total[name],)
    return numbers


def captured(expected: Expected, word: str, legacy: bool = False) -> Numbers:
    """What the `attention_capture` program must collect; with ``legacy``, what it does with legacy hooks."""
    attentions = [t.array for call in expected.trace.calls if word in call.path for t in call.outputs if t]
    gradients = [
        (of_grad_fn(expected, firing) if legacy else firing.grad_input)[0]
        for n, _ in enumerate(expected.trace.passes)
        for firing in _firings(expected, n)
        if word in firing.call.path
    ]
    lists: dict[str, list[Any]] = {"attention": attentions, "gradient": gradients}
    return {("capture", what, n): (array,) for what, arrays in lists.items() for n, array in enumerate(arrays)}


def of_grad_fn(expected: Expected, firing: Firing) -> tuple[Array | None, ...]:
    """The gradients that the grad_fn of a layer's output yields, for a layer that is one Node.

    A Linear on a batch (N, in_features) is the Node ``addmm(bias, input, weight.t())``, which yields the gradients of
    (bias, input, weight transposed). On one vector it is several Nodes; which one is last depends on the release.
    """
    if not isinstance(firing.call.module, Linear):
        return firing.grad_input
    known = expected.known_gradients(firing.call, firing.backward)
    return known["bias"], known["input[0]"], known["weight"].T


def _firings(expected: Expected, backward: int) -> list[Firing]:
    """The firings on the children of a chain in one backward pass: the last child first."""
    return [f for f in reversed(expected.firings) if f.backward == backward and f.call.path]


def _chain(layers: Mapping[str, Layer]) -> Composite:
    """A module that calls each of ``layers`` with the output of the one before it."""
    names = ["x", *(f"after_{name}" for name in layers)]
    body = tuple(Call(out, name, (Ref(x),)) for x, name, out in zip(names, layers, names[1:]))
    return Composite(tuple(layers.items()), ("x",), body, Ref(names[-1]))
