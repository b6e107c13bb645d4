"""What a formula gives, one array or several, is what those who call a step are given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hookcheck.topology.primitive import Array, Arrays, Gradients, Primitive

X, INDEX = np.array([1.0, 2]), np.array([1])


@dataclass(frozen=True)
class Total(Primitive):
    """One array for one array."""

    def value(self, x: Array) -> Array:
        total: Array = x.sum()
        return total

    def pull(self, v: Array, x: Array) -> Array:
        return np.full(x.shape, v)


@dataclass(frozen=True)
class Looked(Primitive):
    """Two outputs of two inputs and a parameter."""

    def value(self, x: Array, index: Array, weight: Array) -> Arrays:
        return weight * x[index], index

    def pull(self, v: Array, of_index: Array, x: Array, index: Array, weight: Array) -> Gradients:
        dx = np.zeros_like(x)
        dx[index] = weight * v
        return dx, None, {"weight": v * x[index]}


def test_one_array_stands_for_a_tuple_of_it() -> None:
    (y,) = Total().forward((X,), {})
    (dx,), of_parameters = Total().vjp((X,), {}, (np.array(5.0),))
    assert isinstance(y, np.ndarray)
    assert (y, dx.tolist(), of_parameters) == (3, [5, 5], {})  # type: ignore[union-attr]


def test_the_gradients_of_parameters_come_last() -> None:
    weight = {"weight": np.array([3.0])}
    assert [y.tolist() for y in Looked().forward((X, INDEX), weight)] == [[6], [1]]
    (dx, none), of_parameters = Looked().vjp((X, INDEX), weight, (np.array([5.0]), INDEX))
    assert dx is not None
    assert (dx.tolist(), none, of_parameters["weight"].tolist()) == ([0, 15], None, [10])
