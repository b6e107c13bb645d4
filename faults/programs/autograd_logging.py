"""Faults in how autograd logs what it executes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from torch.autograd import graph

from ..engine import Fault, replaced


def attaching(change: Any) -> AbstractContextManager[None]:
    """Gives ``change(attach)`` where hooks are put on the whole graph."""
    return replaced(graph, "_register_logging_hooks_on_whole_graph", change)


def forgetting(attach: Any) -> Any:
    """Leaves the hooks where they are."""
    return lambda outputs: (attach(outputs), lambda: None)[1]


def meddling(attach: Any) -> Any:
    """Has each root's Node halve its gradient, too."""

    def attached(outputs: Any) -> Any:
        handles = [output.grad_fn.register_prehook(lambda grads: (grads[0] / 2,)) for output in outputs]
        detach = attach(outputs)
        return lambda: (detach(), [handle.remove() for handle in handles])

    return attached


FAULTS = (
    Fault("autograd logging: its hooks are left on the graph", lambda: attaching(forgetting), ("LG-01",)),
    Fault("autograd logging: nothing is logged", lambda: attaching(lambda _: lambda outputs: lambda: None), ("LG-01",)),
    Fault("autograd logging: gradients are changed", lambda: attaching(meddling), ("LG-02",)),
)
