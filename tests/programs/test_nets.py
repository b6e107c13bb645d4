"""Do the nets of programs compute what their one line says?"""

from __future__ import annotations

import torch
from torch import nn

from hookcheck.programs.nets import leaf, net, times, weighted


def test_a_net_computes_its_function_with_all_its_arguments() -> None:
    network = net(lambda module, a, *rest, key: (a, rest, key))
    assert network(1, 2, 3, key=4) == (1, (2, 3), 4)


def test_numbers_become_parameters_and_modules_submodules() -> None:
    child = nn.ReLU()
    network = net(lambda module, x: module.weight * module.child(x), weight=3.0, child=child, name="kept")
    assert [name for name, _ in network.named_parameters()] == ["weight"]
    assert list(network.children()) == [child]
    assert network.name == "kept"
    assert network(torch.tensor(2.0)).item() == 6.0


def test_factors_and_weights_have_the_gradients_that_they_say() -> None:
    x, tripled, hooked = leaf(1.0, 2.0), times(3.0), weighted(5.0)
    hooked(tripled(x)).sum().backward()
    assert x.grad.tolist() == [15.0, 15.0]
    assert hooked.weight.grad.item() == 9.0
    assert not list(tripled.parameters())
