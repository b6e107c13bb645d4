"""What ``torch.autograd.grad`` gives, where a hook may make zeros of what is absent without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hookcheck.oracle.graph import newest
from hookcheck.topology.model import Grad
from hookcheck.topology.tree import Ref

from .cases import AROUND_TWO, CALLED, V, again, case, gaps


@pytest.mark.parametrize(
    ("kind", "unused", "due"),
    [
        ("acting_full_backward", np.zeros((1, 1)), []),
        ("acting_full_backward", None, []),
        ("acting_full_backward", np.ones((1, 1)), [("AG-02", "wrong values")]),
        ("full_backward", None, []),
        ("full_backward", np.zeros((1, 1)), [("AG-02", "wrong values")]),
    ],
)
def test_where_hooks_act_zeros_that_were_asked_for_may_be_none(
    kind: str, unused: Any, due: list[tuple[str, str]]
) -> None:
    weights = Ref("net.two.a.weight"), Ref("net.two.b.weight")
    base = case(AROUND_TWO[0], (CALLED, Grad("g", (Ref("y", (0,)),), weights, (V,))), kind)
    used, _ = newest(base.expected.trace.names["g"])
    given = {**base.plain.values, "g": (used.array, unused)}
    assert gaps(again(base, values=given), "AG-02") == due
    assert gaps(again(base, values={**given, "g": (used.array,)}), "AG-02") == [("AG-02", "wrong values")]
    assert gaps(again(base, values={**given, "g": (None, unused)}), "AG-02") == [("AG-02", "wrong values")]
