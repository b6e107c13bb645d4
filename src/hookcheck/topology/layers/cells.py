"""What does a recurrent cell compute in one step, and what in a whole sequence of them? ``RNNCell`` and its kin."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis.strategies import DrawFn, booleans, integers, sampled_from

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers.batched import Batched
from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.layers.unary import conjugated, sigmoid
from hookcheck.topology.primitive import Array, Gradients, Layer, Operand, Shape
from hookcheck.topology.tree import Pack, Tree

State = tuple[Array, ...]


class Recurrence(ABC):
    """A step of recurrence, element by element: gate pre-activations ``a`` and ``b`` and a state to the next state.

    ``a = W_ih x + b_ih`` comes from the input, ``b = W_hh h + b_hh`` from the hidden state, each (N, gates · hidden);
    the state's first tensor is ``h``. Of complex numbers each step that torch takes is differentiable from
    ``complex_since`` on.
    """

    complex_since = "1.10"  # that of the sigmoid
    gates = 1
    states = 1

    @abstractmethod
    def step(self, a: Array, b: Array, state: State) -> State:
        """The next state."""

    @abstractmethod
    def back(self, a: Array, b: Array, state: State, d: State) -> tuple[Array, Array, State]:
        """The gradients of ``a``, of ``b`` and of the state (of ``h`` beside ``b``), given those of the next state."""


class _Plain(Recurrence):
    """``h' = f(a + b)``, ``f`` being tanh or relu; ``da = db = f'(a + b) dh'``."""

    def __init__(self, nonlinearity: str) -> None:
        self.tanh = nonlinearity == "tanh"
        self.complex_since = "1.9" if self.tanh else ""  # relu compares, and complex numbers have no order

    def step(self, a: Array, b: Array, state: State) -> State:
        return (np.tanh(a + b) if self.tanh else np.maximum(a + b, 0),)

    def back(self, a: Array, b: Array, state: State, d: State) -> tuple[Array, Array, State]:
        da = d[0] * (1 - np.tanh(a + b) ** 2 if self.tanh else a + b > 0)
        return da, da, (np.zeros(1, a.dtype),)


class _Lstm(Recurrence):
    """Of ``a + b`` the gates ``i, f, g, o``; ``c' = σ(f) c + σ(i) tanh(g)``, ``h' = σ(o) tanh(c')``; chain rule."""

    gates = 4
    states = 2

    def step(self, a: Array, b: Array, state: State) -> State:
        i, f, g, o = self._gates(a, b)
        c = f * state[1] + i * g
        return o * np.tanh(c), c

    def back(self, a: Array, b: Array, state: State, d: State) -> tuple[Array, Array, State]:
        (i, f, g, o), c = self._gates(a, b), state[1]
        tanh = np.tanh(f * c + i * g)
        dc = d[1] + d[0] * o * (1 - tanh**2)
        slopes = (i * (1 - i) * g * dc, f * (1 - f) * c * dc, (1 - g**2) * i * dc, o * (1 - o) * tanh * d[0])
        da = np.concatenate(slopes, -1)
        return da, da, (np.zeros(1, a.dtype), f * dc)

    def _gates(self, a: Array, b: Array) -> tuple[Array, Array, Array, Array]:
        i, f, g, o = np.split(a + b, 4, -1)
        return sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)


class _Gru(Recurrence):
    """Gates ``r, z = σ(a + b)``, ``n = tanh(aₙ + r bₙ)``; ``h' = (1 − z) n + z h``; chain rule."""

    gates = 3

    def step(self, a: Array, b: Array, state: State) -> State:
        _, z, n, _ = self._gates(a, b)
        return ((1 - z) * n + z * state[0],)

    def back(self, a: Array, b: Array, state: State, d: State) -> tuple[Array, Array, State]:
        r, z, n, b_n = self._gates(a, b)
        d_n = d[0] * (1 - z) * (1 - n**2)
        d_r, d_z = d_n * b_n * r * (1 - r), d[0] * (state[0] - n) * z * (1 - z)
        return np.concatenate((d_r, d_z, d_n), -1), np.concatenate((d_r, d_z, d_n * r), -1), (d[0] * z,)

    def _gates(self, a: Array, b: Array) -> tuple[Array, Array, Array, Array]:
        (a_r, a_z, a_n), (b_r, b_z, b_n) = np.split(a, 3, -1), np.split(b, 3, -1)
        r = sigmoid(a_r + b_r)
        return r, sigmoid(a_z + b_z), np.tanh(a_n + r * b_n), b_n


TANH, RELU, LSTM, GRU = _Plain("tanh"), _Plain("relu"), _Lstm(), _Gru()


def weight_shapes(
    rule: Recurrence, sizes: tuple[int, int, int], bias: bool, projected: bool = False
) -> dict[str, Shape]:
    """The parameters of a step with ``sizes`` (of the input, of the gates, of ``h``), in torch's order."""
    inputs, hidden, given = sizes
    gates = rule.gates * hidden
    shapes: dict[str, Shape] = {"weight_ih": (gates, inputs), "weight_hh": (gates, given)}
    if bias:
        shapes.update(bias_ih=(gates,), bias_hh=(gates,))
    return {**shapes, "weight_hr": (given, hidden)} if projected else shapes


class SequenceRun:
    """The steps of ``rule`` over a sequence ``x`` (T, N, input), from a first state.

    ``outputs`` (T, N, ·) holds every ``h``, ``last`` the last state. Where there is a ``weight_hr``, it projects each
    new ``h``.
    """

    def __init__(self, rule: Recurrence, x: Array, first: State, weights: Mapping[str, Array]) -> None:
        """Runs the steps; ``weights`` are named as `weight_shapes` names them."""
        self.rule, self.x, self.weights = rule, x, weights
        self.a = x @ weights["weight_ih"].T + weights.get("bias_ih", 0.0)
        self.states, self.b, self.unprojected = [first], [], []
        for a in self.a:
            state = self.states[-1]
            self.b.append(state[0] @ weights["weight_hh"].T + weights.get("bias_hh", 0.0))
            h, *rest = rule.step(a, self.b[-1], state)
            self.unprojected.append(h)
            self.states.append((h @ weights["weight_hr"].T if "weight_hr" in weights else h, *rest))
        self.outputs, self.last = np.stack([h for h, *_ in self.states[1:]]), self.states[-1]

    def back(self, v: Array, d: State) -> tuple[Array, State, dict[str, Array]]:
        """The gradients of ``x``, of the first state and of the weights, given those of `outputs` and of `last`."""
        weights, steps = self.weights, range(len(self.x))
        das, dbs, dhs = np.empty_like(self.a), np.empty_like(self.a), np.empty_like(self.outputs)
        for t in reversed(steps):
            dhs[t] = d[0] + v[t]
            dh = dhs[t] @ weights["weight_hr"] if "weight_hr" in weights else dhs[t]
            das[t], dbs[t], (direct, *rest) = self.rule.back(self.a[t], self.b[t], self.states[t], (dh, *d[1:]))
            d = (dbs[t] @ weights["weight_hh"] + direct, *rest)
        before = np.stack([h for h, *_ in self.states[:-1]])
        gradients = {
            "weight_ih": np.tensordot(das, self.x, ((0, 1), (0, 1))),
            "weight_hh": np.tensordot(dbs, before, ((0, 1), (0, 1))),
            "bias_ih": das.sum((0, 1)),
            "bias_hh": dbs.sum((0, 1)),
        }
        if "weight_hr" in weights:
            gradients["weight_hr"] = np.tensordot(dhs, np.stack(self.unprojected), ((0, 1), (0, 1)))
        return das @ weights["weight_ih"], d, {name: gradients[name] for name in weights}


class _Cell(Batched):
    """A single step, ``x`` (N, input_size) and a state of (N, hidden_size) tensors, zeros if it is not given."""

    keywords = ("input", "hx")
    squeezed = True
    input_size: int
    hidden_size: int
    bias: bool
    state: bool

    @property
    @abstractmethod
    def rule(self) -> Recurrence:
        """The step."""

    @property
    def complex_since(self) -> str:
        """The rule's."""
        return self.rule.complex_since

    @classmethod
    def takes_batch(cls, shape: Shape) -> bool:
        """(N, input_size)."""
        return len(shape) == 2 and all(shape)

    @classmethod
    def fitting_batch(cls, draw: DrawFn, shape: Shape) -> tuple[Layer, tuple[Operand, ...]]:
        """One to three hidden features; the state given or not."""
        layer = cls.drawn(draw, shape[-1], draw(integers(1, 3)))
        given = (Operand((shape[0], layer.hidden_size)),) * layer.rule.states if layer.state else ()
        return layer, (Operand(shape), *given)

    @classmethod
    @abstractmethod
    def drawn(cls, draw: DrawFn, input_size: int, hidden_size: int) -> _Cell:
        """The cell, its other settings drawn."""

    def parameters(self) -> dict[str, Shape]:
        """Weights and biases from input and from state to the gates, one gate's rows after another's."""
        return weight_shapes(self.rule, (self.input_size, self.hidden_size, self.hidden_size), self.bias)

    def source(self) -> str:
        """The constructor call."""
        return constructor(self, "state")

    def value(self, *inputs: Array, **parameters: Array) -> State:
        """``x`` (N, input_size) and the state to the next state."""
        return self._run(inputs, parameters).last

    def pull(self, *arrays: Array, **parameters: Array) -> Gradients:
        """The gradients of ``x``, of the given state and of the parameters, given those of the next state."""
        v, inputs = arrays[: self.rule.states], arrays[self.rule.states :]
        run = self._run(*conjugated(inputs, parameters))
        dx, first, gradients = run.back(np.zeros_like(run.outputs), v)
        return dx[0], *(first if self.state else ()), gradients

    def _run(self, inputs: tuple[Array, ...], parameters: dict[str, Array]) -> SequenceRun:
        x, *given = inputs
        zeros = np.zeros((len(x), self.hidden_size), x.dtype)
        return SequenceRun(self.rule, x[None], tuple(given) or (zeros,) * self.rule.states, parameters)


@dataclass(frozen=True)
class RNNCell(_Cell):
    """``nn.RNNCell``: ``h' = f(W_ih x + b_ih + W_hh h + b_hh)``, ``f`` tanh or relu.

    With ``da = f' dh'``: ``dx = W_ihᵀ da``, ``dh = W_hhᵀ da``, ``dW_ih = Σ da xᵀ``, ``dW_hh = Σ da hᵀ``, both biases
    ``Σ da``. Source: the documentation of ``torch.nn.RNNCell``; the VJP is the chain rule.
    """

    input_size: int
    hidden_size: int
    bias: bool = True
    nonlinearity: str = "tanh"
    state: bool = False
    unbatched: bool = False

    @property
    def rule(self) -> Recurrence:
        """Tanh or relu."""
        return TANH if self.nonlinearity == "tanh" else RELU

    @classmethod
    def drawn(cls, draw: DrawFn, input_size: int, hidden_size: int) -> RNNCell:
        """Tanh; or relu, where it adds up an odd number of products of odd numbers, so that none lies on its kink."""
        bias, state = draw(sampled_from([True, False])), draw(booleans())
        odd = (input_size + hidden_size * state) % 2
        return cls(input_size, hidden_size, bias, draw(sampled_from(["tanh", "relu"][: 1 + odd])), state)

    def last_node_of_batch(self, step: Step) -> tuple[Form, ...]:
        """The nonlinearity: the gradient of what it is of."""
        run, d = self._run(*conjugated(step.inputs, step.parameters)), step.cotangents
        return step.alone(self.rule.back(run.a[0], run.b[0], run.states[0], d)[0])


@dataclass(frozen=True)
class LSTMCell(_Cell):
    """``nn.LSTMCell``: of ``W_ih x + b_ih + W_hh h + b_hh`` the gates ``i, f, g, o``, then

    ``c' = σ(f) c + σ(i) tanh(g)`` and ``h' = σ(o) tanh(c')``. The VJP takes ``dh'`` to ``o`` and ``c'``, ``dc'`` to
    ``i, f, g`` and ``c``, and the gates' gradients through the two linear maps.
    Source: the documentation of ``torch.nn.LSTMCell``; Hochreiter and Schmidhuber, Long Short-Term Memory (1997).
    """

    rule = LSTM

    input_size: int
    hidden_size: int
    bias: bool = True
    state: bool = False
    unbatched: bool = False

    @property
    def separate(self) -> bool:
        """Without a batch each has its axis taken away by a Node of its own."""
        return self.unbatched

    @classmethod
    def drawn(cls, draw: DrawFn, input_size: int, hidden_size: int) -> LSTMCell:
        """With or without bias."""
        return cls(input_size, hidden_size, draw(sampled_from([True, False])), draw(booleans()))

    def call(self, operands: tuple[Tree, ...]) -> tuple[tuple[Tree, ...], tuple[tuple[str, Tree], ...]]:
        """``(x, (h, c))``."""
        x, *given = operands
        return ((x, Pack("tuple", tuple(given))) if given else (x,)), ()

    def result(self, outputs: tuple[Any, ...]) -> Any:
        """``(h', c')``."""
        return outputs

    def last_node_of_batch(self, step: Step) -> tuple[Form, ...]:
        """The product ``σ(o) tanh(c')``, or of ``c'`` the sum ``σ(f) c + σ(i) tanh(g)``."""
        every, v = step.floating, step.v
        without = tuple(place for place in every if place != 2 or not self.state)
        if step.slot:
            return ((step.inner(v, *every), step.inner(v, *without)),)
        o, tanh = self._out(step.inputs, step.parameters)
        return ((step.inner(v * tanh.conj(), *without), step.inner(v * o.conj(), *every)),)

    def whole(
        self, inputs: tuple[Array, ...], parameters: dict[str, Array], cotangents: tuple[Array, ...], slot: int
    ) -> Array | None:
        """``dc' + dh' σ(o) (1 − tanh(c')²)``: torch makes ``h'`` of ``c'``."""
        o, tanh = self._out(self.batched(inputs, self.axes_in(len(inputs))), parameters)
        dh, dc = self.batched(cotangents, self.axes_out)
        return self.bare((dc + dh * np.conj(o * (1 - tanh**2)),), (0,))[0]

    def _out(self, inputs: tuple[Array, ...], parameters: dict[str, Array]) -> tuple[Array, Array]:
        """``σ(o)`` and ``tanh(c')`` of a batch."""
        run = self._run(inputs, parameters)
        return sigmoid(np.split(run.a[0] + run.b[0], 4, -1)[3]), np.tanh(run.last[1])


@dataclass(frozen=True)
class GRUCell(_Cell):
    """``nn.GRUCell``: with ``a = W_ih x + b_ih`` and ``b = W_hh h + b_hh``, each split into gates ``r, z, n``,

    ``r = σ(aᵣ + bᵣ)``, ``z = σ(a_z + b_z)``, ``n = tanh(aₙ + r bₙ)``, ``h' = (1 − z) n + z h``. The VJP takes ``dh'``
    to ``z``, ``n`` and ``h``, ``n``'s to ``aₙ``, ``bₙ`` and ``r``, and ``da`` and ``db`` through their linear maps.
    Source: the documentation of ``torch.nn.GRUCell``; Cho et al., arXiv:1406.1078.
    """

    rule = GRU

    input_size: int
    hidden_size: int
    bias: bool = True
    state: bool = False
    unbatched: bool = False

    @classmethod
    def drawn(cls, draw: DrawFn, input_size: int, hidden_size: int) -> GRUCell:
        """With or without bias."""
        return cls(input_size, hidden_size, draw(sampled_from([True, False])), draw(booleans()))

    def last_node_of_batch(self, step: Step) -> tuple[Form, ...]:
        """The addition ``(h − n) z + n``."""
        return ((step.inner(step.v), step.inner(step.v)),)
