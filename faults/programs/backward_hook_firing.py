"""Faults in when full backward hooks fire, and in the identity that they hang on."""

from __future__ import annotations

from typing import Any

import torch

from ..engine import Fault, boundary, each, engine, remembered, replaced


def early(original: Any) -> Any:
    """Every hook fires as one whose inputs require no grad."""

    def setup(self: Any, args: Any) -> Any:
        self.n_inputs = len(args)
        return args

    return setup


def only_with_inputs(original: Any) -> Any:
    """No hook fires where no input requires grad."""
    return lambda self, output: output if self.input_tensors_index is None else original(self, output)


def cut_without_inputs(original: Any) -> Any:
    """Where no input requires grad, outputs come without a graph."""
    return lambda self, output: output.detach() if self.input_tensors_index is None else original(self, output)


class Engine:
    """An engine that swallows what callbacks raise."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def queue_callback(self, callback: Any) -> None:
        def quiet() -> None:
            try:
                callback()
            except Exception:
                return

        self.engine.queue_callback(quiet)


FAULTS = (
    Fault(
        "full hooks: grad_output is kept after they ran",
        lambda: remembered(
            lambda self: vars(self).get("waiting"),
            lambda self, value: None if value is None else vars(self).update(waiting=value),
        ),
        ("BF-02", "BF-11", "BL-05", "BL-06"),
    ),
    Fault(
        "full hooks: they fire when gradients of outputs are there",
        lambda: engine("setup_input_hook", early),
        (
            "BF-04",
            "BF-08",
            "BF-10",
            "BF-12",
            "BF-14",
            "BF-15",
        ),
        since="2.0",
    ),
    Fault(
        "full hooks: none fires where no input requires grad",
        lambda: engine("setup_output_hook", only_with_inputs),
        ("BF-05", "BF-07"),
    ),
    Fault(
        "full hooks: outputs have no graph where no input requires grad",
        lambda: engine("setup_output_hook", cut_without_inputs),
        ("BF-13",),
    ),
    Fault(
        "full hooks: the identity doubles gradients",
        lambda: boundary("backward", lambda original: lambda ctx, *g: each(lambda gradient: 2 * gradient)(g)),
        (
            "BF-09",
            "BS-01",
            "BS-02",
            "BL-09",
        ),
    ),
    Fault(
        "full hooks: the identity cuts the graph of gradients",
        lambda: boundary("backward", lambda original: lambda ctx, *g: each(lambda gradient: gradient.detach())(g)),
        ("BF-01",),
    ),
    Fault(
        "callbacks of backward: what they raise is swallowed",
        lambda: replaced(torch.autograd.Variable, "_execution_engine", Engine),
        ("BF-03",),
    ),
    Fault(
        "a Function marks one result as non-differentiable",
        lambda: replaced(
            torch.autograd.function.FunctionCtx,
            "mark_non_differentiable",
            lambda original: lambda ctx, *results: original(ctx, *results[:1]),
        ),
        ("BF-06",),
    ),
)
