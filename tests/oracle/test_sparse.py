"""Does a gradient get through a sparse tensor as torch documents it? By hand, and held against torch."""

from __future__ import annotations

import numpy as np
import pytest

from hookcheck.oracle.expected import Expected
from hookcheck.probe.run import observe
from hookcheck.topology.model import Apply, Backward, Call, Composite, Input, Topology
from hookcheck.topology.ops.elementwise import Shift
from hookcheck.topology.ops.tensors import AsDense, AsTensor
from hookcheck.topology.tensors import TENSORS
from hookcheck.topology.tree import Ref

from .test_formulas import offered

X, Y, V = Ref("x"), Ref("y"), Ref("v")


def reading(written: str, read: str) -> Topology:
    """``x + 1`` made a tensor of class ``written``, or left as it is, and read as one of ``read``."""
    body = [Apply("u", Shift(1.0), (X,)), *([Apply("s", AsTensor(written), (Ref("u"),))] if written else [])]
    read_back = Apply("h", AsDense(read), (Ref("s") if written else Ref("u"),))
    net = Composite((), ("x",), (*body, read_back), Ref("h"))
    inputs = (Input("x", (2, 2), True), Input("v", (2, 2)))
    return Topology(net, inputs, (Call("y", "", (X,)), Backward((Y,), (V,))))


@pytest.mark.parametrize(
    ("written", "read", "expected"),
    [
        ("sparse COO", "sparse COO", [[0, 3], [5, 0]]),
        ("sparse CSR", "sparse CSR", [[0, 3], [5, 0]]),
        ("", "sparse COO", [[2, 3], [5, 7]]),
    ],
)
def test_zeros_that_are_not_stored_get_no_gradient(written: str, read: str, expected: list[list[float]]) -> None:
    topology = reading(written, read)
    numbers = {"x": np.array([[-1.0, 1.0], [2.0, -1.0]]), "v": np.array([[2.0, 3.0], [5.0, 7.0]])}
    assert Expected(topology, numbers).leaf_gradients["x"].tolist() == expected
    if written and offered(TENSORS[written].since):  # the oldest torches read no plain ones
        gradient = observe(topology, numbers, None).gradients["x"]
        assert gradient is not None
        assert gradient.tolist() == expected
