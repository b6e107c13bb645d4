"""Faults in how hooks are called that run once a leaf's ``.grad`` has been updated."""

from __future__ import annotations

import threading
from typing import Any

import torch

from ..autograd import Hook, Patch, after_accumulation, copied, doubled, first, ignored, late, on_tensors, removing
from ..engine import Fault, added, replaced
from ..registering import dropped, edited, every_second

NAME = "register_post_accumulate_grad_hook"


def as_tensor_hooks() -> Patch:
    """Makes them tensor hooks: they run before the gradient is accumulated, and on any tensor."""

    def make(original: Any) -> Any:
        return lambda self, hook: self.register_hook(lambda grad: hook(self) and None)

    return replaced(torch.Tensor, NAME, make)


def _on_results_too() -> Patch:
    def make(original: Any) -> Any:
        def register(self: Any, hook: Hook) -> Any:
            return original(self, hook) if self.is_leaf else self.register_hook(dropped(hook))

        return register

    return replaced(torch.Tensor, NAME, make)


def _on_parameters_alone() -> Patch:
    def make(original: Any) -> Any:
        return lambda self, hook: original(self, hook if isinstance(self, torch.nn.Parameter) else dropped(hook))

    return replaced(torch.Tensor, NAME, make)


def _in_mode(mode: bool) -> Any:
    def change(hook: Hook) -> Hook:
        def call(p: Any) -> Any:
            with torch.set_grad_enabled(mode):
                return hook(p)

        return call

    return change


def _set_drops_them() -> Patch:
    original = torch.Tensor.set_

    def set_(self: Any, *args: Any) -> Any:
        (self._post_accumulate_grad_hooks or {}).clear()
        return original(self, *args)

    return added(torch.Tensor, "set_", set_)


def _dense(original: Any) -> Any:
    """Leaves sparse gradients out."""
    return lambda self, hook: original(self, lambda p: None if p.grad is not None and p.grad.is_sparse else hook(p))


def _at_home(original: Any) -> Any:
    """Leaves out what other threads accumulate."""
    home = threading.main_thread()
    return lambda self, hook: original(self, lambda p: hook(p) if threading.current_thread() is home else None)


FAULTS = (
    Fault(
        "post-accumulate hooks: run as tensor hooks",
        as_tensor_hooks,
        ("PA-01", "PA-02", "PA-03", "PA-05", "PA-08", "PA-10", "PA-11"),
    ),
    Fault("post-accumulate hooks: registered on results", _on_results_too, ("PA-02", "PA-03", "PA-10")),
    Fault("post-accumulate hooks: dropped on leaves that are no parameters", _on_parameters_alone, ("PA-02", "PA-04")),
    Fault(
        "post-accumulate hooks: get the gradient",
        lambda: after_accumulation(lambda hook: lambda p: hook(p.grad)),
        ("PA-01", "PA-04", "PA-05"),
    ),
    Fault("post-accumulate hooks: get a copy", lambda: after_accumulation(copied), ("PA-04", "PA-05")),
    Fault("post-accumulate hooks: results ignored", lambda: after_accumulation(ignored), ("PA-06",)),
    Fault(
        "post-accumulate hooks: called every second time",
        lambda: after_accumulation(every_second),
        ("PA-01", "PA-05", "PA-09", "PA-12"),
    ),
    Fault("post-accumulate hooks: called twice", lambda: after_accumulation(doubled), ("PA-01", "PA-05", "PA-08")),
    Fault("post-accumulate hooks: always without grad mode", lambda: after_accumulation(_in_mode(False)), ("PA-07",)),
    Fault("post-accumulate hooks: always in grad mode", lambda: after_accumulation(_in_mode(True)), ("PA-05", "PA-07")),
    Fault(
        "post-accumulate hooks: a new one goes before the others",
        lambda: replaced(torch.Tensor, NAME, first),
        ("PA-09", "PA-11"),
    ),
    Fault(
        "post-accumulate hooks: run before late tensor hooks",
        lambda: on_tensors(late),
        ("PA-11",),
    ),
    Fault("post-accumulate hooks: remove() does nothing", lambda: removing(lambda handle: None), ("PA-05", "PA-09")),
    Fault(
        "post-accumulate hooks: remove() takes off all",
        lambda: removing(lambda handle: handle.hooks_dict_ref().clear()),
        ("PA-09",),
    ),
    Fault("post-accumulate hooks: set_ drops them", _set_drops_them, ("PA-12",)),
    Fault(
        "post-accumulate hooks: any tensor of no dimension takes them",
        lambda: edited(
            torch.Tensor,
            "register_post_accumulate_grad_hook",
            ("if not self.requires_grad:", "if not self.requires_grad and self.dim():"),
        ),
        ("PA-02",),
        since="2.1",
    ),
    Fault(
        "post-accumulate hooks: not called for a sparse gradient",
        lambda: replaced(torch.Tensor, NAME, _dense),
        ("PA-01",),
    ),
    Fault(
        "post-accumulate hooks: called in the main thread alone",
        lambda: replaced(torch.Tensor, NAME, _at_home),
        ("PA-01",),
    ),
)
