from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest

from hookcheck.topology.layers.activation import Tanh
from hookcheck.topology.layers.convolution import Conv2d
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.layers.normalisation import LayerNorm, RMSNorm
from hookcheck.topology.model import (
    Apply,
    Backward,
    Call,
    Composite,
    Input,
    Leak,
    ModuleList,
    Sequential,
    Topology,
    Within,
    children,
    size,
    statements,
    walk,
    worked_out_once,
)
from hookcheck.topology.needs import needs
from hookcheck.topology.ops import Sum
from hookcheck.topology.tree import Literal

from .samples import CALLED, SAMPLES, SMALL, X, Y, plain


@pytest.mark.parametrize("values", [(1, True, 1.0), (0, False, 0.0, -0.0), (None, "None"), ("1", 1)])
def test_literals_are_equal_if_they_print_alike(values: tuple[Any, ...]) -> None:
    assert [[Literal(a) == Literal(b) for a in values] for b in values] == [[a is b for a in values] for b in values]
    assert len({Literal(value) for value in values * 2}) == len(values)
    assert Literal(1) != 1


def test_walk_goes_parents_first_by_dotted_path() -> None:
    inner = Sequential((Linear(1, 1), Tanh()))
    net = Composite((("stem", inner), ("blocks", ModuleList((inner,)))), ("x",), (), X)
    paths = ["", "stem", "stem.0", "stem.1", "blocks", "blocks.0", "blocks.0.0", "blocks.0.1"]
    assert [path for path, _ in walk(net)] == paths
    assert children(Tanh()) == ()


def test_statements_are_those_of_main_and_of_every_body_however_deep() -> None:
    kinds = [type(s) for s in statements(SAMPLES["grad modes"])]
    assert kinds == [Within, Call, Within, Call, Backward, Call, Within, Call]
    assert sum(isinstance(s, Leak) for s in statements(SAMPLES["leak"])) == 1


def within(mode: str) -> Topology:
    return replace(SMALL, main=(Within("no_grad", (Within(mode, (CALLED,)),)),))


@pytest.mark.parametrize(("mode", "since"), [("no_grad", "1.7"), ("enable_grad", "1.7"), ("inference_mode", "1.9")])
def test_a_topology_needs_the_torch_of_its_grad_modes(mode: str, since: str) -> None:
    assert needs(within(mode))[0] == since


def test_what_is_needed_is_named() -> None:
    assert needs(within("inference_mode")) == ("1.9", "inference_mode")


def test_a_grad_mode_inside_a_body_is_needed_too() -> None:
    body = (Within("inference_mode", (Call("h", "fc", (X,)),)),)
    assert needs(replace(SMALL, module=replace(SMALL.module, body=body))) == ("1.9", "inference_mode")


def test_backward_with_respect_to_chosen_leaves_came_with_torch_1_8() -> None:
    assert needs(SAMPLES["gradient of the input alone"])[0] == "1.8"
    assert needs(SMALL)[0] == "1.7"


def test_versions_are_compared_as_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Linear, "since", "1.10")
    assert needs(replace(within("inference_mode"), module=Linear(2, 1))) == ("1.10", "Linear")


def test_an_operation_of_main_is_needed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sum, "since", "2.0")
    assert needs(replace(SMALL, main=(CALLED, Apply("l", Sum(), (Y,))))) == ("2.0", "Sum")


def test_a_topology_without_layers_needs_nothing() -> None:
    assert needs(plain(Composite((), ("x",), (), X)))[0] == "1.7"


def test_size_counts_statements_and_modules_then_elements() -> None:
    # main: two statements; body: one; modules: net and fc; elements: 2 of x and 1 of v.
    assert size(SMALL) == (5, 3)


def test_a_layer_with_many_settings_is_no_larger_than_one_with_few() -> None:
    convolution = plain(Conv2d(1, 1, (1, 1)), (1, 1, 1, 1), (1, 1, 1, 1))
    linear = plain(Linear(1, 1), (1,), (1,))
    assert size(convolution) == size(linear)


def test_size_orders_smaller_first() -> None:
    linear = plain(Linear(3, 3))
    ordered = [
        replace(linear, main=(CALLED,)),
        replace(linear, inputs=(Input("x", (1, 3)), Input("v", (1, 3)))),
        linear,
        plain(Sequential((Linear(3, 3),))),
        plain(Sequential((Linear(3, 3), Tanh()))),
        plain(Sequential((Sequential((Linear(3, 3),)), Tanh()))),
    ]
    sizes = [size(topology) for topology in ordered]
    assert sizes == sorted(set(sizes))


def test_a_scalar_input_is_one_element() -> None:
    assert size(replace(SMALL, inputs=(Input("x", ()),)))[1] == 1


@pytest.mark.parametrize(
    ("layer", "needed"),
    [
        (LayerNorm((2,)), ("1.7", "LayerNorm")),
        (LayerNorm((2,), bias=False), ("2.1", "LayerNorm(…, bias=False)")),
        (RMSNorm((2,), None), ("2.4", "RMSNorm")),
    ],
)
def test_what_came_with_a_release_may_be_a_setting(layer: Any, needed: tuple[str, str]) -> None:
    assert needs(replace(SMALL, module=layer)) == needed


@pytest.mark.parametrize(
    ("dtype", "needed"), [("float64", ("1.11", "ddp")), ("complex128", ("2.9", "ddp on complex tensors"))]
)
def test_a_context_may_take_complex_numbers_later(dtype: str, needed: tuple[str, str]) -> None:
    assert needs(replace(SMALL, main=(replace(CALLED, context="ddp"),), dtype=dtype)) == needed


@pytest.mark.parametrize(
    ("tensor", "needed"),
    [("", ("2.1", "after_compile")), ("large strides", ("2.9", "after_compile on tensors of classes"))],
)
def test_a_context_may_take_classes_of_tensors_later(tensor: str, needed: tuple[str, str]) -> None:
    inputs = tuple(replace(each, tensor=tensor) for each in SMALL.inputs)
    assert needs(replace(SMALL, inputs=inputs, main=(replace(CALLED, context="after_compile"),))) == needed


def test_what_a_topology_keeps_is_worked_out_once() -> None:
    asked = []

    @worked_out_once
    def seed(topology: Topology) -> int:
        asked.append(topology)
        return topology.seed

    topology = Topology(Sequential(()), (), (), seed=3)
    assert [seed(topology), seed(topology), seed(replace(topology, seed=4))] == [3, 3, 4]
    assert len(asked) == 2
    assert pickle.loads(pickle.dumps(topology)) == topology
    assert seed(pickle.loads(pickle.dumps(topology))) == 3
    assert len(asked) == 3  # what is kept stays in its process
