"""Identities of our own in the place of a full backward hook's: what they alone do to a run, no hook is to blame for.

A full hook has an identity over the tensor arguments of each call of its module, and one over its outputs (notes on
autograd, 'Modifying Tensors in-place', and the docs of ``register_full_backward_hook``). They join tensors and change
the order in which gradients are summed. A run without hooks and with such identities shows how far that goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_FILLS_OUTPUTS = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 3)
"""Whether an output without a gradient gets zeros: not since pytorch#116454."""


class _Identity(torch.autograd.Function):
    """Hands its tensors on; where it ``fills``, zeros stand for gradients that are not there."""

    @staticmethod
    def forward(ctx: Any, fills: bool, *tensors: Any) -> Any:
        if not fills:
            ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[tensor for tensor in tensors if not tensor.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, *gradients)


@contextmanager
def boundaries() -> Iterator[None]:
    """While it is open, each call of a module has identities over its tensor arguments and over its output tensors."""
    base: Any = torch.nn.Module
    call = base.__call__

    def bounded(module: Any, *args: Any, **kwargs: Any) -> Any:
        result = call(module, *_crossing(args, True), **kwargs)
        if isinstance(result, torch.Tensor):
            return _crossing((result,), _FILLS_OUTPUTS)[0]
        return _crossing(result, _FILLS_OUTPUTS) if isinstance(result, tuple) else result

    base.__call__ = bounded
    try:
        yield
    finally:
        base.__call__ = call


def _crossing(items: tuple[Any, ...], fills: bool) -> tuple[Any, ...]:
    """The same with every tensor behind one identity, if any requires grad; a namedtuple keeps its type."""
    places = [place for place, item in enumerate(items) if isinstance(item, torch.Tensor)]
    if not torch.is_grad_enabled() or not any(items[place].requires_grad for place in places):
        return items
    identity: Any = _Identity
    crossed = dict(zip(places, identity.apply(fills, *(items[place] for place in places))))
    made = [crossed.get(place, item) for place, item in enumerate(items)]
    return type(items)(*made) if hasattr(items, "_fields") else tuple(made)
