"""How is backward captured by compiled autograd? In a graph that runs as it is, with hooks of each kind for it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

from hookcheck.probe.lazy import torch
from hookcheck.programs.nets import leaf, net

EAGER, CAPTURED = "eager", "captured"


def captures() -> Any:
    """The module of compiled autograd, which torch imports late."""
    return import_module("torch._dynamo.compiled_autograd")


def capture(compile: Callable[[Any], Any] = lambda graph: graph.forward) -> AbstractContextManager[None]:
    """Has compiled autograd capture each backward in a graph, of which ``compile`` makes the function that runs."""
    context: AbstractContextManager[None] = captures()._enable(compile)
    return context


def backward(way: str) -> AbstractContextManager[None]:
    """Has each backward run as it is, or captured."""
    return capture() if way == CAPTURED else nullcontext()


def listed(gradients: Any) -> list[Any]:
    """Gradients as numbers; None where there is none."""
    return [gradient if gradient is None else gradient.tolist() for gradient in gradients]


CHECKED: dict[str, Callable[..., Any]] = {
    "tensor hook": lambda change, x, y: y.register_hook(change),
    "tensor hook of a leaf": lambda change, x, y: x.register_hook(change),
    "pre-hook of a Node": lambda change, x, y: y.grad_fn.register_prehook(lambda outputs: (change(outputs[0]),)),
    "hook of a Node": lambda change, x, y: y.grad_fn.register_hook(lambda inputs, outputs: (change(inputs[0]),)),
}
"""How hooks are registered between the leaf ``x`` and ``y`` whose results take the place of gradients."""

KINDS = (*CHECKED, "post-accumulate-grad hook", "saved tensor", "full backward hook", "full backward pre-hook")


def hooked(kind: str, change: Callable[[Any], Any]) -> tuple[Any, Any]:
    """A leaf of zeros, and its exponential: a hook of this kind changes a gradient of 1, or what is saved, which is 1.

    A hook that is called after accumulation puts another gradient in the place of that.
    """
    x = leaf(0.0, 0.0)
    module = net(lambda module, x: x.exp())
    if kind == "full backward hook":
        module.register_full_backward_hook(lambda module, inputs, outputs: (change(inputs[0]),))
    if kind == "full backward pre-hook":
        module.register_full_backward_pre_hook(lambda module, outputs: (change(outputs[0]),))
    saving = torch.autograd.graph.saved_tensors_hooks(lambda saved: saved, change)
    with saving if kind == "saved tensor" else nullcontext():
        y = module(x)
    if kind in CHECKED:
        CHECKED[kind](change, x, y)
    if kind == "post-accumulate-grad hook":
        x.register_post_accumulate_grad_hook(lambda x: setattr(x, "grad", change(x.grad)))
    return x, y
