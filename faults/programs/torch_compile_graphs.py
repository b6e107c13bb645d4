"""Faults in how many graphs torch.compile makes of a module with hooks."""

from __future__ import annotations

from typing import Any

import torch

from ..engine import Fault, replaced


def _breaking(original: Any) -> Any:
    """Compiles what breaks the graph before it calls, whether or not ``fullgraph`` is asked for."""

    def compiled(what: Any, fullgraph: bool = False, **options: Any) -> Any:
        def call(x: Any) -> Any:
            x = x + 0
            torch._dynamo.graph_break()
            return what(x)

        return original(call, **options)

    return compiled


def _called(original: Any) -> Any:
    """Compiles for a backend that calls each graph as the module that it is."""
    return lambda what, backend="", **options: original(what, backend=lambda graph, inputs: graph.__call__, **options)


FAULTS = (
    Fault(
        "torch.compile: a graph ends before a module is called",
        lambda: replaced(torch, "compile", _breaking),
        ("TC-27",),
        kinds=(),
        since="2.1",
    ),
    Fault(
        "torch.compile: graphs are called as modules",
        lambda: replaced(torch, "compile", _called),
        ("TC-29",),
        kinds=(),
        since="2.6",
    ),
)
