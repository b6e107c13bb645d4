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

_RELEASE = tuple(map(int, torch.__version__.split(".")[:2]))


class _BoundaryIdentity(torch.autograd.Function):
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
        result, fills = call(module, *_crossing(args, True), **kwargs), _fills_outputs(args)
        if isinstance(result, torch.Tensor):
            return _crossing((result,), fills)[0]
        return _crossing(result, fills) if isinstance(result, tuple) else result

    base.__call__ = bounded
    try:
        yield
    finally:
        base.__call__ = call


def _fills_outputs(args: tuple[Any, ...]) -> bool:
    """Whether an output without a gradient gets zeros. From 2.0 on the hook hands on the gradients that it was given,
    unless no input requires grad; since 2.3 (pytorch#116454) there are none to begin with."""
    if _RELEASE < (2, 0):
        return True
    asking = any(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args)
    return _RELEASE < (2, 3) and not asking


def _crossing(items: tuple[Any, ...], fills: bool) -> tuple[Any, ...]:
    """The same with every tensor behind one identity, if any requires grad; a namedtuple keeps its type."""
    places = [place for place, item in enumerate(items) if isinstance(item, torch.Tensor)]
    if not torch.is_grad_enabled() or not any(items[place].requires_grad for place in places):
        return items
    identity: Any = _BoundaryIdentity
    crossed = dict(zip(places, identity.apply(fills, *(items[place] for place in places))))
    outputs = [crossed.get(place, item) for place, item in enumerate(items)]
    return type(items)(*outputs) if hasattr(items, "_fields") else tuple(outputs)
