"""Faults in which gradient edge a tensor has."""

from __future__ import annotations

from typing import Any

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


FAULTS = (
    Fault("gradient edge: that of an operation's first result", lambda: giving(first_result), ("GE-01",)),
    Fault("gradient edge: one too far", lambda: giving(next_one), ("GE-01", "GE-02", "GE-03")),
)
