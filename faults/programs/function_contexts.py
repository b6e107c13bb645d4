"""Faults in what Functions of one's own save, write to and are told."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import FunctionCtx

from ..autograd import on_tensors
from ..engine import Fault, replaced
from ..registering import Hook, edited
from .saved_tensors_hooks import pairs
from .state_dict_hooks import Patch


def _holding(original: Any) -> Any:
    """Saving for backward keeps the context for good."""
    contexts: list[Any] = []

    def save(self: Any, *tensors: Any) -> None:
        contexts.append(self)
        original(self, *tensors)

    return save


def _copies() -> Patch:
    """What the hooks give for a saved tensor is copied."""

    def make(original: Any) -> Any:
        def init(self: Any, pack: Any, unpack: Any) -> None:
            original(self, pack, lambda packed: unpack(packed).clone())

        return init

    return replaced(torch.autograd.graph.saved_tensors_hooks, "__init__", make)


def _unseen() -> Patch:
    """A product in place is written past autograd."""

    def make(original: Any) -> Any:
        def product(self: Any, other: Any) -> Any:
            original(self.data, other)
            return self

        return product

    return replaced(torch.Tensor, "mul_", make)


def _untold() -> Patch:
    """Backward runs as it comes."""
    return replaced(torch.amp, "custom_bwd", lambda original: lambda backward, *, device_type: backward)


def _returned() -> Patch:
    """What hooks on tensors return is kept."""
    gradients: list[Any] = []

    def keep(hook: Hook) -> Hook:
        def call(gradient: Any) -> Any:
            gradients.append(hook(gradient))
            return gradients[-1]

        return call

    return on_tensors(keep)


def _graph(ctx: Any, leaf: Any, tensor: Any) -> Any:
    return tensor


def _given_a_node() -> Patch:
    """An inference tensor that is to require grad gets a Node."""
    methods = {"forward": staticmethod(_graph), "backward": staticmethod(lambda ctx, gradient: (gradient, None))}
    gives: Any = type("Gives", (torch.autograd.Function,), methods)

    def make(original: Any) -> Any:
        def require(self: Any, requires_grad: bool = True) -> Any:
            if not self.is_inference():
                return original(self, requires_grad)
            return gives.apply(torch.ones(2, requires_grad=True), self)

        return require

    return replaced(torch.Tensor, "requires_grad_", make)


def _saved_for_good() -> Patch:
    """Contexts keep all that their pack and unpack hooks return."""
    results: list[Any] = []

    def keeping(hook: Any) -> Any:
        return lambda given: (results.append(hook(given)), results[-1])[1]

    return pairs(keeping, keeping)


FAULTS = (
    Fault(
        "saving for backward keeps the context",
        lambda: replaced(FunctionCtx, "save_for_backward", _holding),
        ("LT-14",),
        kinds=(),
        since="1.13",
    ),
    Fault("what is unpacked is copied", _copies, ("ST-34",), kinds=(), since="1.10"),
    Fault("what hooks for saved tensors return is kept", _saved_for_good, ("LT-17",), kinds=(), since="1.11"),
    Fault("what hooks on tensors return is kept", _returned, ("LT-17",), kinds=(), since="1.10"),
    Fault("an inference tensor can be given a Node", _given_a_node, ("IP-12",), kinds=(), since="1.10"),
    Fault("a product in place goes past autograd", _unseen, ("IP-11",), kinds=()),
    Fault("custom_bwd does nothing", _untold, ("AU-12",), kinds=(), since="2.4"),
    Fault(
        "custom_bwd has the usual dtype",
        lambda: edited(torch.amp, "custom_bwd", ("dtype=args[0]._dtype,", "")),
        ("AU-12",),
        kinds=(),
        since="2.4",
    ),
)
