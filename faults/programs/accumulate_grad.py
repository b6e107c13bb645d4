"""Faults in what becomes of hooks on the Node that accumulates a leaf's gradient."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from ..autograd import after_accumulation, copied, late, on_nodes, on_tensors
from ..engine import Fault, added, calling, replaced
from ..registering import dropped, every_second
from .post_accumulate_hooks import as_tensor_hooks


@contextmanager
def _leaves_hold_nodes() -> Iterator[None]:
    """Keeps every Node that was ever asked for, as a leaf that held its Node would."""
    alive: list[Any] = []
    grad_fn = torch.Tensor.grad_fn

    def get(self: Any) -> Any:
        node = grad_fn.__get__(self)
        alive.extend(following for following, _ in node.next_functions if node)
        return node

    with added(torch.Tensor, "grad_fn", property(get)):
        yield


def _as_float(hook: Any) -> Any:
    """The hook, called with gradients in the dtype that most leaves have."""
    return lambda *args: hook(*(arg.float() if arg.dtype == torch.float64 else arg for arg in args))


def _grad_as_float(hook: Any) -> Any:
    """The hook, called once ``.grad`` has the dtype that most leaves have."""

    def call(leaf: Any) -> None:
        grad, leaf.grad_dtype = leaf.grad, None
        leaf.grad = grad.float()
        hook(leaf)

    return call


def _layouts(name: str, make: Any) -> AbstractContextManager[None]:
    """Replaces a method of what says whether layouts of gradients are enforced."""
    return replaced(torch.autograd.enforce_grad_layout_policy, name, make)  # type: ignore[attr-defined]


def _relaxed_by_decorating(original: Any) -> Any:
    """What decorates without going back to what held before."""
    return lambda self, function: super(type(self), self).__call__(function)


FAULTS = (
    Fault("accumulating Nodes: leaves hold them", _leaves_hold_nodes, ("U-15",)),
    Fault(
        "accumulating Nodes: hooks dropped",
        lambda: on_nodes(dropped),
        ("U-15", "AG-03", "AG-04", "AG-05"),
    ),
    Fault("accumulating Nodes: hooks called every second time", lambda: on_nodes(every_second), ("U-15",)),
    Fault("accumulating Nodes: hooks get copies", lambda: on_nodes(copied), ("AG-06",)),
    Fault("accumulating Nodes: tensor hooks come after all", lambda: on_tensors(late), ("U-16",)),
    Fault("accumulating Nodes: post-accumulate hooks run before it", as_tensor_hooks, ("U-16",)),
    Fault(
        "accumulating Nodes: a layer's full hook comes after all",
        lambda: calling(lambda hook, *args: late(hook)(*args)),
        ("U-16",),
    ),
    Fault(
        "accumulating Nodes: hooks get float32 whatever was asked for",
        lambda: on_tensors(_as_float),
        ("AG-07",),
        since="2.10",
    ),
    Fault(
        "accumulating Nodes: .grad becomes float32",
        lambda: after_accumulation(_grad_as_float),
        ("AG-07",),
        since="2.10",
    ),
    Fault(
        "accumulating Nodes: post-accumulate hooks dropped",
        lambda: after_accumulation(dropped),
        ("AG-07",),
        since="2.10",
    ),
    Fault(
        "accumulating Nodes: layouts are relaxed for good",
        lambda: _layouts("__exit__", lambda exit: lambda *args: None),
        ("AG-08",),
        since="2.13",
    ),
    Fault(
        "accumulating Nodes: layouts are relaxed by decorating",
        lambda: _layouts("__call__", _relaxed_by_decorating),
        ("AG-08",),
        since="2.13",
    ),
)
