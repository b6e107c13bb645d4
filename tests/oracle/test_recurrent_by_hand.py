"""Recurrent networks on numbers that can be checked in the head."""

from __future__ import annotations

import numpy as np
import pytest

from hookcheck.oracle.tolerance import assert_close
from hookcheck.topology.layers.cells import GRUCell, LSTMCell
from hookcheck.topology.layers.recurrent import LSTM, RNN
from hookcheck.topology.primitive import Array
from hookcheck.topology.tree import Pack, Ref

ON, OFF = 100.0, -100.0  # a gate wide open and shut: its sigmoid is 1 and 0 to 40 digits


def filled(*numbers: float) -> Array:
    return np.array(numbers, dtype=float).reshape(-1, 1)


def test_two_steps_of_an_rnn() -> None:
    layer = RNN(1, 1, nonlinearity="relu")
    x = np.array([[[1.0]], [[1.0]]])
    one = np.zeros(1)
    parameters = {"weight_ih_l0": filled(2), "weight_hh_l0": filled(3), "bias_ih_l0": one, "bias_hh_l0": one}
    y, h = layer.forward((x,), parameters)
    assert y.ravel().tolist() == [2, 8]  # 2 · 1, then 2 · 1 + 3 · 2
    assert h.tolist() == [[[8]]]
    (dx,), gradients = layer.vjp((x,), parameters, (np.zeros((2, 1, 1)), np.ones((1, 1, 1))))
    assert dx.ravel().tolist() == [6, 2]  # the first step's input comes through W_hh too
    assert gradients["weight_ih_l0"].item() == 4  # x₂ + 3 x₁
    assert gradients["weight_hh_l0"].item() == 2  # h₁; before it the state is 0
    assert gradients["bias_ih_l0"].item() == gradients["bias_hh_l0"].item() == 4  # 1 + 3


def test_the_reverse_direction_starts_at_the_last_step_and_lies_on_the_right() -> None:
    layer = RNN(1, 1, nonlinearity="relu", bias=False, bidirectional=True)
    weights = {"weight_ih_l0": filled(1), "weight_hh_l0": filled(2)}
    weights.update({f"{name}_reverse": weight for name, weight in weights.items()})
    y, h = layer.forward((np.array([[[1.0]], [[5.0]]]),), weights)
    assert y[:, 0].tolist() == [[1, 11], [7, 5]]  # forward 1, 5 + 2 · 1; backward 5, then 1 + 2 · 5
    assert h.ravel().tolist() == [7, 11]


@pytest.mark.parametrize(
    ("gates", "c"),
    [((ON, OFF, ON, ON), 1.0), ((OFF, ON, ON, ON), 0.25), ((ON, ON, OFF, ON), -0.75), ((OFF, OFF, ON, ON), 0.0)],
)
def test_an_lstm_s_gates_are_input_forget_cell_output(gates: tuple[float, ...], c: float) -> None:
    # c' = i tanh(g) + f c with c = 1/4: the input gate lets ±1 in, the forget gate keeps 1/4
    layer = LSTMCell(1, 1)
    weights = {"weight_ih": np.zeros((4, 1)), "weight_hh": np.zeros((4, 1))}
    biases = {"bias_ih": np.array(gates), "bias_hh": np.zeros(4)}
    state = (np.ones((1, 1)), np.ones((1, 1)), np.full((1, 1), 0.25))
    h, cell = layer.forward(state, {**weights, **biases})
    assert_close(cell.item(), c)
    assert_close(h.item(), np.tanh(c))
    shut = {"bias_ih": np.array((*gates[:3], OFF)), "bias_hh": np.zeros(4)}
    assert_close(layer.forward(state, {**weights, **shut})[0].item(), 0)


def test_a_projected_lstm_hands_on_the_projection_and_keeps_the_cell() -> None:
    layer = LSTM(1, 2, bias=False, proj_size=1)
    shapes = layer.parameters()
    assert list(shapes) == ["weight_ih_l0", "weight_hh_l0", "weight_hr_l0"]
    assert (shapes["weight_hh_l0"], shapes["weight_hr_l0"]) == ((8, 1), (1, 2))
    weights = {name: np.zeros(shape) for name, shape in shapes.items()}
    weights["weight_hr_l0"] += [[2.0, 4.0]]
    # all gates at 1/2 and g at 0, so c' = c / 2 and h' = tanh(c / 2) / 2
    state = (np.zeros((1, 1, 1)), np.array([[[2.0, 0.0]]]))
    y, h, c = layer.forward((np.ones((1, 1, 1)), *state), weights)
    assert c.tolist() == [[[1, 0]]]
    assert y.item() == h.item()
    assert_close(h, [[[np.tanh(1.0)]]])  # 2 · tanh(1) / 2 + 4 · 0


@pytest.mark.parametrize(
    ("reset", "update", "h"),
    [(ON, ON, 0.25), (ON, OFF, np.tanh(0.5 + 3)), (OFF, OFF, np.tanh(0.5))],
)
def test_a_gru_s_gates_are_reset_update_new(reset: float, update: float, h: float) -> None:
    # update keeps h = 1/4; else n = tanh(1/2 + r · 3): the reset gate is upon the bias of the hidden part as well
    layer = GRUCell(1, 1)
    weights = {"weight_ih": np.zeros((3, 1)), "weight_hh": np.zeros((3, 1))}
    biases = {"bias_ih": np.array([reset, update, 0.5]), "bias_hh": np.array([0.0, 0.0, 3.0])}
    (output,) = layer.forward((np.ones((1, 1)), np.full((1, 1), 0.25)), {**weights, **biases})
    assert_close(output.item(), h)


def test_the_states_of_an_lstm_are_passed_and_given_back_in_a_tuple() -> None:
    x, h, c = map(Ref, ("x", "h", "c"))
    assert LSTM(1, 1, state=True).call((x, h, c)) == ((x, Pack("tuple", (h, c))), ())
    assert LSTMCell(1, 1).call((x,)) == ((x,), ())
    assert LSTM(1, 1).result(("y", "h", "c")) == ("y", ("h", "c"))
    assert LSTMCell(1, 1).result(("h", "c")) == ("h", "c")


def test_projections_are_newer() -> None:
    assert (LSTM(1, 2).since, LSTM(1, 2, proj_size=1).since) == ("1.7", "1.8")
