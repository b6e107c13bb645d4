"""Faults in how hooks on tensors are called."""

from __future__ import annotations

import inspect
import weakref
from functools import partial
from typing import Any

import torch

from hookcheck.programs.watching import noting

from ..autograd import Hook, Patch, copied, doubled, first, ignored, late, on_tensors, removing
from ..engine import Fault, added, replaced
from ..registering import dropped, edited, every_second


def _tensors_alone(hook: Hook) -> Hook:
    """The hook, with any result that is no tensor taken for None."""

    def call(grad: Any) -> Any:
        result = hook(grad)
        return result if isinstance(result, torch.Tensor) else None

    return call


def _weakly(hook: Hook) -> Hook:
    """The hook, to which, if it is a method, only what it is a method of refers."""
    if not inspect.ismethod(hook):
        return hook
    method = weakref.WeakMethod(hook)
    return lambda grad: (method() or noting([], ""))(grad)


def _cast(hook: Hook) -> Hook:
    """The hook, with its result made to fit."""

    def call(grad: Any) -> Any:
        result = hook(grad)
        fits = isinstance(result, torch.Tensor) and result.numel() == grad.numel()
        return result.to(grad.dtype).reshape(grad.shape) if fits else result

    return call


def _without_graph(hook: Hook) -> Hook:
    """The hook, called only where no graph is made."""
    return lambda grad: None if torch.is_grad_enabled() else hook(grad)


def _on_the_node(register: Any) -> Any:
    """Puts hooks on results on the Node behind them, as torch did before 2.0."""

    def put(self: Any, hook: Hook) -> Any:
        def pre(grad_outputs: Any) -> Any:
            result = hook(grad_outputs[self.output_nr])
            changed = list(grad_outputs)
            changed[self.output_nr] = grad_outputs[self.output_nr] if result is None else result
            return tuple(changed)

        return register(self, hook) if self.is_leaf else self.grad_fn.register_prehook(pre)

    return put


def _under_grad(register: Any) -> Any:
    """Registers nothing under no_grad."""
    return lambda self, hook: register(self, hook if torch.is_grad_enabled() else dropped(hook))


def _not_for_none_on_leaves(register: Any) -> Any:
    """Passes over undefined gradients of leaves, as torch did before 2.0."""

    def put(self: Any, hook: Hook) -> Any:
        return register(self, (lambda grad: None if grad is None else hook(grad)) if self.is_leaf else hook)

    return put


def retaining(keep: Any) -> Patch:
    """Has ``retain_grad`` call ``keep(tensor, grad)`` in a hook, also on leaves."""
    return added(torch.Tensor, "retain_grad", lambda self: self.register_hook(lambda grad: keep(self, grad)) and None)


def _keep(tensor: Any, grad: Any) -> None:
    tensor.grad = grad if tensor.grad is None else tensor.grad + grad


def _registration(change: Any) -> Patch:
    return replaced(torch.Tensor, "register_hook", change)


def _unheard(hook: Hook) -> Hook:
    """The hook; what it returns is ignored if it is neither a function nor a partial of one."""
    return hook if inspect.isroutine(hook) or isinstance(hook, partial) else lambda grad: (hook(grad), None)[1]


def _in_its_own_memory(hook: Hook) -> Hook:
    """The hook; what it returns is ignored if several of its numbers are one place in memory."""

    def run(grad: Any) -> Any:
        result = hook(grad)
        shared = isinstance(result, torch.Tensor) and result.layout is torch.strided and 0 in result.stride()
        return None if shared else result

    return run


FAULTS = (
    Fault(
        "tensor hooks: called every second time",
        lambda: on_tensors(every_second),
        ("TH-01", "TH-05", "TH-07", "TH-08", "TH-10"),
    ),
    Fault("tensor hooks: called twice", lambda: on_tensors(doubled), ("TH-01", "TH-10", "TH-11")),
    Fault("tensor hooks: called at the end of backward", lambda: on_tensors(late), ("TH-03", "TH-07", "TH-09")),
    Fault(
        "tensor hooks: dropped",
        lambda: on_tensors(dropped),
        ("TH-01", "TH-02", "TH-13", "TH-12"),
    ),
    Fault(
        "tensor hooks: not called where a graph is made",
        lambda: on_tensors(_without_graph),
        ("TH-08",),
    ),
    Fault("tensor hooks: results ignored", lambda: on_tensors(ignored), ("TH-03", "TH-05", "TH-06", "TH-08", "EX-09")),
    Fault("tensor hooks: results that are no tensors ignored", lambda: on_tensors(_tensors_alone), ("TH-02",)),
    Fault("tensor hooks: results made to fit", lambda: on_tensors(_cast), ("TH-02",)),
    Fault("tensor hooks: called with a copy", lambda: on_tensors(copied), ("TH-04",)),
    Fault("tensor hooks: those on results sit on the Node", lambda: _registration(_on_the_node), ("TH-06",)),
    Fault("tensor hooks: not registered under no_grad", lambda: _registration(_under_grad), ("TH-09",)),
    Fault(
        "tensor hooks: not called for undefined gradients of leaves",
        lambda: _registration(_not_for_none_on_leaves),
        ("TH-14",),
    ),
    Fault("tensor hooks: a new one goes before the others", lambda: _registration(first), ("TH-03", "TH-05", "TH-10")),
    Fault("tensor hooks: remove() does nothing", lambda: removing(lambda handle: None), ("TH-05", "TH-10")),
    Fault(
        "tensor hooks: remove() takes off all",
        lambda: removing(lambda handle: handle.hooks_dict_ref().clear()),
        ("TH-05",),
    ),
    Fault(
        "tensor hooks: remove() takes off the last",
        lambda: removing(lambda handle: handle.hooks_dict_ref() and handle.hooks_dict_ref().popitem()),
        ("TH-05",),
    ),
    Fault("tensor hooks: retain_grad retains twice if asked twice", lambda: retaining(_keep), ("EX-09",)),
    Fault(
        "tensor hooks: retain_grad keeps the last gradient alone",
        lambda: retaining(lambda tensor, grad: setattr(tensor, "grad", grad)),
        ("EX-09",),
    ),
    Fault(
        "tensor hooks: retain_grad does nothing, whatever it is called on",
        lambda: added(torch.Tensor, "retain_grad", lambda self: None),
        ("EX-09",),
    ),
    Fault(
        "tensor hooks: any tensor of no dimension takes them",
        lambda: edited(
            torch.Tensor, "register_hook", ("if not self.requires_grad:", "if not self.requires_grad and self.dim():")
        ),
        ("TH-09",),
    ),
    Fault(
        "tensor hooks: any tensor takes them under no_grad",
        lambda: edited(
            torch.Tensor,
            "register_hook",
            ("if not self.requires_grad:", "if torch.is_grad_enabled() and not self.requires_grad:"),
        ),
        ("TH-09",),
    ),
    Fault(
        "tensor hooks: one that is a method goes with what it is a method of",
        lambda: on_tensors(_weakly),
        ("TH-01",),
    ),
    Fault(
        "a backward that creates its graph retains no other",
        lambda: edited(torch.autograd, "backward", ("retain_graph = create_graph", "retain_graph = False")),
        ("TH-01",),
    ),
    Fault(
        "torch.autograd.grad retains the graph",
        lambda: edited(torch.autograd, "grad", ("retain_graph = create_graph", "retain_graph = True")),
        ("TH-01",),
    ),
    Fault(
        "tensor hooks: what an object that is no function returns is ignored", lambda: on_tensors(_unheard), ("TH-03",)
    ),
    Fault(
        "tensor hooks: what they return is ignored where its memory is shared",
        lambda: on_tensors(_in_its_own_memory),
        ("TH-03",),
    ),
)
