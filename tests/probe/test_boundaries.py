"""What do identities of our own in the place of a full hook's show, and are they gone afterwards?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hookcheck.probe.boundaries import boundaries
from hookcheck.probe.observation import same
from hookcheck.probe.run import lacking, observe
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Apply, Backward, Call, Composite, Input, Topology
from hookcheck.topology.ops.arithmetic import Add
from hookcheck.topology.tree import Ref
from hookcheck.topology.values import values

X, V = Ref("x"), Ref("v")
UNUSED = Topology(
    Composite((("a", Linear(2, 2)),), ("x", "z"), (Call("h", "a", (X,)), Apply("g", Add(), (Ref("h"), X))), Ref("g")),
    (Input("x", (2,), True), Input("z", (2,), True), Input("v", (2,))),
    (Call("y", "", (X, Ref("z"))), Apply("w", Add(), (Ref("y"), X)), Backward((Ref("w"),), (V,))),
)
"""x is used three times, twice inside of the root; nothing is made of z, which the root is given as well."""


@pytest.mark.parametrize("kind", ["full_backward", "full_backward_pre"])
def test_they_show_what_a_full_hook_does_to_values_and_gradients(kind: str) -> None:
    if lacking(kind):
        pytest.skip(lacking(kind))
    numbers = values(UNUSED)
    plain, bounded = observe(UNUSED, numbers, None), observe(UNUSED, numbers, None, within=boundaries)
    hooked = observe(UNUSED, numbers, kind)
    assert plain.gradients["z"] is None
    assert same(bounded.gradients["z"], np.zeros(2))
    assert same(dict(bounded.gradients), dict(hooked.gradients))
    assert same(bounded.values, hooked.values)


def test_they_are_gone_when_the_context_is_left() -> None:
    call = torch.nn.Module.__call__
    with boundaries():
        assert torch.nn.Module.__call__ is not call
    assert torch.nn.Module.__call__ is call
