"""What do identities of our own in the place of a full hook's show, and are they gone afterwards?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from hookcheck.probe import boundaries as module
from hookcheck.probe.boundaries import boundaries
from hookcheck.probe.observation import same
from hookcheck.probe.run import lacking, observe
from hookcheck.releases.numbers import release
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Apply, Backward, Call, Composite, Input, Topology
from hookcheck.topology.ops.arithmetic import Add
from hookcheck.topology.tree import Pack, Ref
from hookcheck.topology.values import values

X, V = Ref("x"), Ref("v")
FILLING = [
    ((1, 13), True, True),
    ((1, 13), False, True),
    ((2, 0), True, False),
    ((2, 0), False, True),
    ((2, 2), False, True),
    ((2, 3), False, False),
    ((2, 13), True, False),
]
"""By release, and whether an input requires grad: is there a zero for an output that nothing uses?"""
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


HALF = Topology(
    Composite(
        (("a", Linear(2, 2)), ("b", Linear(2, 2))),
        ("x",),
        (Call("h", "a", (X,)), Call("g", "b", (X,))),
        Pack("tuple", (Ref("h"), Ref("g"))),
    ),
    (Input("x", (2,), False), Input("v", (2,))),
    (Call("y", "", (X,)), Backward((Ref("y", (0,)),), (V,))),
)
"""Two outputs, of which the loss uses one; no input requires grad."""


@pytest.mark.parametrize(("of", "asking", "fills"), FILLING)
def test_an_output_without_a_gradient_gets_zeros_by_release(
    monkeypatch: pytest.MonkeyPatch, of: tuple[int, int], asking: bool, fills: bool
) -> None:
    monkeypatch.setattr(module, "_RELEASE", of)
    numbers = values(HALF)
    topology = replace(HALF, inputs=(replace(HALF.inputs[0], requires_grad=asking), HALF.inputs[1]))
    bounded = observe(topology, numbers, None, within=boundaries)
    assert (bounded.gradients["b.bias"] is not None) is fills


def test_this_release_fills_in_what_a_full_hook_does() -> None:
    if lacking("full_backward"):
        pytest.skip(lacking("full_backward"))
    if not (2, 0) <= release(torch.__version__) < (2, 3):
        pytest.skip("whether inputs ask for gradients tells zeros from None from 2.0 to 2.2 alone")
    for asking in (True, False):
        topology = replace(HALF, inputs=(replace(HALF.inputs[0], requires_grad=asking), HALF.inputs[1]))
        numbers = values(topology)
        hooked, bounded = (
            observe(topology, numbers, "full_backward"),
            observe(topology, numbers, None, within=boundaries),
        )
        assert same(dict(bounded.gradients), dict(hooked.gradients))
        assert (hooked.gradients["b.bias"] is None) is asking


def test_they_are_gone_when_the_context_is_left() -> None:
    call = torch.nn.Module.__call__
    with boundaries():
        assert torch.nn.Module.__call__ is not call
    assert torch.nn.Module.__call__ is call
