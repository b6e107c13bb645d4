"""Recurrent networks over whole sequences: ``nn.RNN``, ``nn.LSTM``, ``nn.GRU``, in layers and in both directions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis.strategies import DrawFn, booleans, integers, sampled_from

from hookcheck.topology.last_node import Form, Step
from hookcheck.topology.layers import cells
from hookcheck.topology.layers.batched import Axis, BatchedSequence
from hookcheck.topology.layers.cells import Recurrence, SequenceRun, weight_shapes
from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.layers.unary import conjugated
from hookcheck.topology.primitive import Array, Arrays, Gradients, Layer, Operand, Shape
from hookcheck.topology.tree import Pack, Tree


class _Recurrent(BatchedSequence):
    """A sequence ``x`` (T, N, input_size), or (N, T, input_size), to the outputs of its steps and the last state.

    Each layer runs over what the one before it gave, in its ``_reverse`` direction from the last step to the first; the
    directions' outputs lie side by side. Each tensor of a state is (layers · directions, N, ·), zeros if not given. The
    VJP goes back through the layers, and in each through its steps.
    """

    keywords = ("input", "hx")
    squeezed = True
    separate = True
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    bidirectional: bool
    state: bool

    @property
    @abstractmethod
    def rule(self) -> Recurrence:
        """The step."""

    @property
    def complex_since(self) -> str:
        """The rule's: a module can be cast to a complex dtype, and all that this one does is differentiable there."""
        return self.rule.complex_since

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of features of each tensor of the state, the output ``h`` first."""
        return (self.hidden_size,) * self.rule.states

    def axes_in(self, count: int) -> Iterable[Axis]:
        """The sequence's, and the second of each tensor of a state."""
        return self.first_axis, *(1,) * self.rule.states

    @property
    def axes_out(self) -> Iterable[Axis]:
        """Those of the inputs."""
        return self.axes_in(1 + self.rule.states)

    @classmethod
    def fitting_sequence(cls, draw: DrawFn, shape: Shape, batch_first: bool) -> tuple[Layer, tuple[Operand, ...]]:
        """One to three hidden features, one or two layers, one or two directions, the state given or not."""
        flags = {"batch_first": batch_first, **{name: draw(booleans()) for name in ("bidirectional", "state")}}
        steps, batch = (shape[1], shape[0]) if batch_first else shape[:2]
        hidden, layers, bias = draw(integers(1, 3)), draw(integers(1, 2)), draw(sampled_from([True, False]))
        settings = {"hidden_size": hidden, "num_layers": layers, "bias": bias, **flags}
        settings.update(cls.drawn(draw, shape[-1], steps, **settings))
        layer: _Recurrent = cls(shape[-1], **settings)  # type: ignore[call-arg]
        stacked = layer.num_layers * len(layer.directions)
        given = [Operand((stacked, batch, size)) for size in layer.sizes] if layer.state else []
        return layer, (Operand(shape), *given)

    @classmethod
    def drawn(cls, draw: DrawFn, input_size: int, steps: int, **settings: Any) -> dict[str, Any]:
        """The settings that only this kind of layer has; ``settings`` are the others."""
        return {}

    @property
    def directions(self) -> tuple[str, ...]:
        """What the names of each direction's parameters end in."""
        return ("", "_reverse") if self.bidirectional else ("",)

    def parameters(self) -> dict[str, Shape]:
        """For each layer and direction, weights and biases from input and from state to the gates."""
        given = self.sizes[0]
        return {
            f"{name}_l{layer}{suffix}": shape
            for layer in range(self.num_layers)
            for suffix in self.directions
            for name, shape in weight_shapes(
                self.rule,
                (given * len(self.directions) if layer else self.input_size, self.hidden_size, given),
                self.bias,
                projected=given != self.hidden_size,
            ).items()
        }

    def source(self) -> str:
        """The constructor call."""
        return constructor(self, "state")

    def result(self, outputs: tuple[Any, ...]) -> Any:
        """``(output, h_n)``."""
        return outputs

    def value(self, *inputs: Array, **parameters: Array) -> Arrays:
        """``x`` and the first state to the outputs (T, N, directions · features), or (N, T, ·), and the last state."""
        runs = self._runs(inputs, parameters)
        states = zip(*(run.last for runs_of_layer in runs for run in runs_of_layer))
        return self._turned(self._joined(runs[-1])), *map(np.stack, states)

    def pull(self, v: Array, *arrays: Array, **parameters: Array) -> Gradients:
        """The gradients of ``x``, of the given first state and of the parameters."""
        of_last, inputs = arrays[: self.rule.states], arrays[self.rule.states :]
        v = self._turned(v)
        gradients: dict[str, Array] = {}
        first = [np.empty_like(d, dtype=inputs[0].dtype) for d in of_last]
        for layer, runs in reversed(list(enumerate(self._runs(*conjugated(inputs, parameters))))):
            sides = np.split(v, len(runs), -1)
            v = np.zeros(1, v.dtype)
            for side, (suffix, run) in enumerate(zip(self.directions, runs)):
                index = layer * len(runs) + side
                dx, state, of_weights = run.back(_along(sides[side], suffix), tuple(d[index] for d in of_last))
                v = v + _along(dx, suffix)
                gradients.update((f"{name}_l{layer}{suffix}", g) for name, g in of_weights.items())
                for whole, d in zip(first, state):
                    whole[index] = d
        return self._turned(v), *(first if self.state else ()), gradients

    def _runs(self, inputs: tuple[Array, ...], parameters: dict[str, Array]) -> list[list[SequenceRun]]:
        """For each layer the run of each direction."""
        x, *given = self._turned(inputs[0]), *inputs[1:]
        stacked, runs = self.num_layers * len(self.directions), []
        first = given or [np.zeros((stacked, x.shape[1], size), x.dtype) for size in self.sizes]
        for layer in range(self.num_layers):
            runs.append(
                [
                    SequenceRun(
                        self.rule,
                        _along(x, suffix),
                        tuple(tensor[layer * len(self.directions) + side] for tensor in first),
                        self._weights(parameters, f"_l{layer}{suffix}"),
                    )
                    for side, suffix in enumerate(self.directions)
                ]
            )
            x = self._joined(runs[-1])
        return runs

    def _joined(self, runs: list[SequenceRun]) -> Array:
        return np.concatenate([_along(run.outputs, suffix) for suffix, run in zip(self.directions, runs)], -1)

    def _turned(self, x: Array) -> Array:
        """Steps first, or back."""
        return x.swapaxes(0, 1) if self.batch_first else x

    def _weights(self, parameters: dict[str, Array], suffix: str) -> dict[str, Array]:
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        return {name: parameters[name + suffix] for name in names if name + suffix in parameters}

    def last_node_of_batch(self, step: Step) -> tuple[Form, ...]:
        """The steps put together, the two directions side by side, or axes exchanged behind that."""
        v = step.v
        if step.slot:
            return (tuple(map(step.inner, v)),)
        if self.batch_first:
            return step.alone(v.swapaxes(0, 1))
        return (tuple(map(step.inner, np.split(v, 2, -1) if self.bidirectional else v)),)


def _along(x: Array, suffix: str) -> Array:
    """The sequence in the order in which a direction runs over it, or back."""
    return x[::-1] if suffix else x


@dataclass(frozen=True)
class RNN(_Recurrent):
    """``nn.RNN``: at each step ``h' = f(W_ih x + b_ih + W_hh h + b_hh)``, ``f`` tanh or relu.

    Output ``h'`` of the last layer, and ``h_n`` of every layer and direction. The VJP is `RNNCell`'s at each step.
    Source: the documentation of ``torch.nn.RNN``.
    """

    input_size: int
    hidden_size: int
    num_layers: int = 1
    nonlinearity: str = "tanh"
    bias: bool = True
    batch_first: bool = False
    bidirectional: bool = False
    state: bool = False
    unbatched: bool = False

    @property
    def rule(self) -> Recurrence:
        """Tanh or relu."""
        return cells.TANH if self.nonlinearity == "tanh" else cells.RELU

    @classmethod
    def drawn(cls, draw: DrawFn, input_size: int, steps: int, **settings: Any) -> dict[str, Any]:
        """Tanh; or relu, where no sum lies on its kink.

        In the first step that is where an odd number of products of odd numbers is added, and in a second layer, all of
        whose inputs may be 0, where no two biases are, which may cancel.
        """
        odd = input_size % 2 and not (settings["state"] and settings["hidden_size"] % 2)
        relu = odd and not (settings["bias"] and settings["num_layers"] > 1)
        return {"nonlinearity": draw(sampled_from(["tanh", "relu"] if relu else ["tanh"]))}


@dataclass(frozen=True)
class LSTM(_Recurrent):
    """``nn.LSTM``: the step of `LSTMCell`; ``h'`` is the output, or ``W_hr h'`` of ``proj_size`` features if not 0.

    Then ``h_n`` and ``c_n`` of every layer and direction. Projecting gives ``dh' = W_hrᵀ v`` and ``dW_hr = Σ v h'ᵀ``.
    Source: the documentation of ``torch.nn.LSTM``; Sak, Senior and Beaufays, arXiv:1402.1128, for the projection.
    """

    rule = cells.LSTM

    input_size: int
    hidden_size: int
    num_layers: int = 1
    bias: bool = True
    batch_first: bool = False
    bidirectional: bool = False
    proj_size: int = 0
    state: bool = False
    unbatched: bool = False

    @property
    def since(self) -> str:
        """Projections came with 1.8."""
        return "1.8" if self.proj_size else "1.7"

    @property
    def sizes(self) -> tuple[int, ...]:
        """``h``, projected if it is, and ``c``."""
        return self.proj_size or self.hidden_size, self.hidden_size

    def opaque(self, dtype: str, device: str) -> bool:
        """oneDNN's LSTM of one direction, on the processors that it knows; behind it axes may be exchanged."""
        one = not (self.bidirectional or self.batch_first or self.unbatched or self.proj_size)
        return super().opaque(dtype, device) or (one and dtype in ("float32", "bfloat16", "float16"))

    @classmethod
    def drawn(cls, draw: DrawFn, input_size: int, steps: int, **settings: Any) -> dict[str, Any]:
        """A projection or none; none over a single step, where ``c_n`` alone would not lead to the last ``W_hr``."""
        return {"proj_size": draw(integers(0, settings["hidden_size"] - 1)) if steps > 1 else 0}

    def call(self, operands: tuple[Tree, ...]) -> tuple[tuple[Tree, ...], tuple[tuple[str, Tree], ...]]:
        """``(x, (h, c))``."""
        x, *given = operands
        return ((x, Pack("tuple", tuple(given))) if given else (x,)), ()

    def result(self, outputs: tuple[Any, ...]) -> Any:
        """``(output, (h_n, c_n))``."""
        return outputs[0], outputs[1:]


@dataclass(frozen=True)
class GRU(_Recurrent):
    """``nn.GRU``: the step of `GRUCell`, of which ``h'`` is the output; ``h_n`` of every layer and direction.

    Source: the documentation of ``torch.nn.GRU``.
    """

    rule = cells.GRU

    input_size: int
    hidden_size: int
    num_layers: int = 1
    bias: bool = True
    batch_first: bool = False
    bidirectional: bool = False
    state: bool = False
    unbatched: bool = False
