"""Faults in which gradient edge a tensor has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import graph

from ..engine import Fault, replaced


def first_result(edge: Any) -> Any:
    """The edge of the first result of the operation."""
    return edge._replace(output_nr=0)


def next_one(edge: Any) -> Any:
    """The edge behind the one that is asked for, where there is one."""
    node, number = next(iter(edge.node.next_functions), (edge.node, edge.output_nr))
    return edge._replace(node=node, output_nr=number)


def giving(change: Any) -> Any:
    """Gives ``change(edge)``."""
    return replaced(graph, "get_gradient_edge", lambda original: lambda tensor: change(original(tensor)))


def without_a_graph(original: Any) -> Any:
    """An edge that is sought by a view of the tensor, which has no graph under no_grad."""
    return lambda tensor: original(tensor.view_as(tensor) if tensor.is_leaf else tensor)


def none_but_in_tuples(original: Any) -> Any:
    """A backward that refuses an edge that is in no tuple."""

    def backward(roots: Any, *others: Any, **options: Any) -> Any:
        if isinstance(roots, graph.GradientEdge):
            raise TypeError("an edge is no root")
        return original(roots, *others, **options)

    return backward


def owning_nothing() -> Any:
    """The edge of a result of a custom Function is one whose graph holds nothing of what was before. That an edge has
    no ``ownership_token`` shows up to 2.12 alone: since pytorch#179924 the Python object of such a Node owns it."""

    def make(original: Any) -> Any:
        def get(tensor: Any) -> Any:
            by_hand = isinstance(tensor.grad_fn, torch._C._FunctionBase)
            return original(tensor.detach().requires_grad_().clone() if by_hand else tensor)

        return get

    return replaced(graph, "get_gradient_edge", make)


def keeping(what: Callable[[Any, Any], Any]) -> Any:
    """Keeps ``what(tensor, edge)`` of each edge that is asked for."""
    held: list[Any] = []

    def make(original: Any) -> Any:
        def get(tensor: Any) -> Any:
            edge = original(tensor)
            held.append(what(tensor, edge))
            return edge

        return get

    return replaced(graph, "get_gradient_edge", make)


FAULTS = (
    Fault(
        "gradient edge: that of a custom Function owns no graph",
        lambda: owning_nothing(),
        ("GE-03", "GE-04"),
        (),
        "2.7",
    ),
    Fault("gradient edge: it keeps its tensor", lambda: keeping(lambda tensor, edge: tensor), ("GE-04",), (), "2.2"),
    Fault("gradient edge: it stays", lambda: keeping(lambda tensor, edge: edge), ("GE-04",), (), "2.2"),
    Fault("gradient edge: that of an operation's first result", lambda: giving(first_result), ("GE-01",)),
    Fault(
        "gradient edge: under no_grad there is none",
        lambda: replaced(graph, "get_gradient_edge", without_a_graph),
        ("GE-01",),
    ),
    Fault("gradient edge: one too far", lambda: giving(next_one), ("GE-01", "GE-02", "GE-03")),
    Fault(
        "gradient edge: a backward takes none that is in no tuple",
        lambda: replaced(torch.autograd, "backward", none_but_in_tuples),
        ("GE-02",),
        since="2.7",
    ),
    Fault(
        "gradient edge: that of a third result is the second's",
        lambda: giving(lambda edge: edge._replace(output_nr=min(edge.output_nr, 1))),
        ("GE-01",),
        since="2.2",
    ),
)
