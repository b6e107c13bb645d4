"""Faults in what becomes of hooks on a tensor that is changed in place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from ..autograd import Hook, ignored, on_tensors
from ..engine import Fault, added, replaced
from ..registering import dropped
from .tensor_hooks import retaining

IN_PLACE = ("mul_", "add_", "cos_")


@contextmanager
def _in_place(around: Any) -> Iterator[None]:
    """Calls ``around(tensor, operation)`` where an operation is to change the tensor in place."""
    with ExitStack() as patches:
        for name in IN_PLACE:
            operation = getattr(torch.Tensor, name)

            def change(self: Any, *args: Any, operation: Any = operation, **kwargs: Any) -> Any:
                around(self, lambda: operation(self, *args, **kwargs))
                return self

            patches.enter_context(added(torch.Tensor, name, change))
        yield


def _hooks_follow(tensor: Any, operation: Any) -> None:
    """Moves the hooks of the tensor to its new grad_fn."""
    hooks = list((tensor._backward_hooks or {}).values())
    for key in list(tensor._backward_hooks or {}):
        del tensor._backward_hooks[key]
    operation()
    for hook in hooks:
        tensor.register_hook(hook)


@contextmanager
def _hooks_stay_with_the_first() -> Iterator[None]:
    """Puts hooks on the grad_fn that the tensor had before it was first changed, as torch did before 2.0."""
    before: dict[int, tuple[Any, Any]] = {}

    def note(tensor: Any, operation: Any) -> None:
        before.setdefault(id(tensor), (tensor, tensor.grad_fn))
        operation()

    def make(register: Any) -> Any:
        def put(self: Any, hook: Hook) -> Any:
            def pre(grad_outputs: Any) -> Any:
                result = hook(grad_outputs[0])
                return None if result is None else (result,)

            return before[id(self)][1].register_prehook(pre) if id(self) in before else register(self, hook)

        return put

    with _in_place(note), replaced(torch.Tensor, "register_hook", make):
        yield


FAULTS = (
    Fault(
        "tensors in place: hooks follow the tensor to its new grad_fn",
        lambda: _in_place(_hooks_follow),
        ("IP-02", "IP-04", "U-24", "IP-06"),
    ),
    Fault(
        "tensors in place: hooks stay with the first grad_fn",
        _hooks_stay_with_the_first,
        ("IP-01", "IP-03", "IP-04", "IP-06"),
    ),
    Fault(
        "tensors in place: hooks are dropped",
        lambda: on_tensors(dropped),
        ("IP-01", "IP-02", "IP-03", "U-24", "IP-09", "IP-10", "IP-13"),
    ),
    Fault("tensors in place: results of hooks are ignored", lambda: on_tensors(ignored), ("IP-02", "IP-03")),
    Fault(
        "tensors in place: retain_grad stays with the grad_fn before",
        lambda: retaining(lambda tensor, grad: setattr(tensor, "grad", grad)),
        ("IP-05", "IP-08"),
    ),
)

OUT_OF_REACH = {"IP-07": "it ends the process on releases where faults are put in, and patches stay in their process"}
