"""Recurrent cells and networks, one sequence and one element of the batch at a time."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from hookcheck.topology.layers.cells import GRUCell, LSTMCell, RNNCell
from hookcheck.topology.layers.recurrent import GRU, LSTM, RNN


def step(layer: Any, weights: dict[str, Any], x: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
    """The next state of one element, ``x`` a vector."""
    a = weights["weight_ih"] @ x + weights.get("bias_ih", 0)
    b = weights["weight_hh"] @ state[0] + weights.get("bias_hh", 0)
    size = layer.hidden_size
    gates = [slice(i * size, (i + 1) * size) for i in range(4)]
    if isinstance(layer, (RNN, RNNCell)):
        return ((jnp.tanh if layer.nonlinearity == "tanh" else jax.nn.relu)(a + b),)
    if isinstance(layer, (LSTM, LSTMCell)):
        i, f, g, o = (a[gate] + b[gate] for gate in gates)
        c = jax.nn.sigmoid(f) * state[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (weights["weight_hr"] @ h if "weight_hr" in weights else h), c
    r, z = (jax.nn.sigmoid(a[gate] + b[gate]) for gate in gates[:2])
    n = jnp.tanh(a[gates[2]] + r * b[gates[2]])
    return ((1 - z) * n + z * state[0],)


def cell(layer: Any, inputs: Any, parameters: Any) -> Any:
    x, *given = inputs
    state = tuple(given) or (jnp.zeros((len(x), layer.hidden_size)),) * (2 if isinstance(layer, LSTMCell) else 1)
    return jax.vmap(lambda x, *state: step(layer, parameters, x, state))(x, *state)


def sequence(layer: Any, x: Any, state: tuple[Any, ...], parameters: Any) -> Any:
    """One element of the batch: ``x`` (T, input), the state's tensors (layers · directions, ·)."""
    last = []
    suffixes = ["", "_reverse"] if layer.bidirectional else [""]
    for number in range(layer.num_layers):
        sides = []
        for suffix in suffixes:
            ending = f"_l{number}{suffix}"
            weights = {name[: -len(ending)]: p for name, p in parameters.items() if name.endswith(ending)}

            def advance(state: Any, x: Any, weights: Any = weights) -> Any:
                state = step(layer, weights, x, state)
                return state, state[0]

            now, h = jax.lax.scan(advance, tuple(s[len(last)] for s in state), x, reverse=bool(suffix))
            last.append(now)
            sides.append(h)
        x = jnp.concatenate(sides, -1)
    return (x, *(jnp.stack(tensors) for tensors in zip(*last)))


def network(layer: Any, inputs: Any, parameters: Any) -> Any:
    x, *state = inputs
    axis = 0 if layer.batch_first else 1
    hidden = (layer.hidden_size,)
    sizes = (getattr(layer, "proj_size", 0) or layer.hidden_size, *(hidden if isinstance(layer, LSTM) else ()))
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    state = state or [jnp.zeros((count, x.shape[axis], size)) for size in sizes]
    out_axes = (axis, *(1 for _ in sizes))
    return jax.vmap(lambda x, state: sequence(layer, x, state, parameters), (axis, 1), out_axes)(x, tuple(state))


IN_JAX = {RNNCell: cell, LSTMCell: cell, GRUCell: cell, RNN: network, LSTM: network, GRU: network}
NOT_IN_JAX: dict[type, str] = {}
