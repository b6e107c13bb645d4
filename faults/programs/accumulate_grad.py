"""Faults in what becomes of hooks on the Node that accumulates a leaf's gradient."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ..autograd import copied, late, on_nodes, on_tensors
from ..engine import Fault, added, calling
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
)
