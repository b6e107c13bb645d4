"""Faults in the order in which backward hooks of different kinds run."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.modules import _functions
from torch.nn.modules import module as torch_module

from ..autograd import Patch, after_accumulation, first, ignored, late, on_nodes, on_tensors
from ..engine import Fault, added, replaced
from .post_accumulate_hooks import NAME, as_tensor_hooks
from .tensor_hooks import _on_the_node


def _one_node_a_tensor() -> Patch:
    """Gives every input and output of a module an identity of its own."""
    apply = _functions.BackwardHookFunction.apply
    each = staticmethod(lambda *tensors: tuple(result for tensor in tensors for result in apply(tensor)))
    return added(_functions.BackwardHookFunction, "apply", each)


def _globals_last() -> Patch:
    """Has the global backward hooks come after a module's own."""

    def make(original: Any) -> Any:
        def get(self: Any) -> Any:
            full, other = original(self)
            count = len(torch_module._global_backward_hooks)
            return full[count:] + full[:count], other

        return get

    return replaced(torch.nn.Module, "_get_backward_hooks", make)


def _retained_as_the_next_hook(original: Any) -> Any:
    """Has a tensor hook keep the gradient of a tensor that has hooks."""

    def retain(self: Any) -> None:
        if self.is_leaf or not self._backward_hooks:
            original(self)
        else:
            self.register_hook(lambda grad: setattr(self, "grad", grad))

    return retain


FAULTS = (
    Fault(
        "order of hooks: tensor hooks of results are pre-hooks of the Node",
        lambda: replaced(torch.Tensor, "register_hook", _on_the_node),
        ("EX-01", "EX-10", "EX-11"),
    ),
    Fault(
        "order of hooks: tensor hooks come last",
        lambda: on_tensors(late),
        ("EX-01", "EX-03", "EX-04", "EX-07", "EX-08", "EX-10", "EX-11"),
    ),
    Fault("order of hooks: results of pre-hooks ignored", lambda: on_nodes(pre=ignored), ("EX-02", "EX-04", "EX-07")),
    Fault(
        "order of hooks: gradients are not retained",
        lambda: added(torch.Tensor, "retain_grad", lambda self: None),
        ("EX-03",),
    ),
    Fault("order of hooks: post-accumulate hooks are tensor hooks", as_tensor_hooks, ("EX-04", "EX-10")),
    Fault("order of hooks: post-accumulate hooks come last", lambda: after_accumulation(late), ("EX-05", "EX-10")),
    Fault(
        "order of hooks: a new tensor hook goes before the others",
        lambda: replaced(torch.Tensor, "register_hook", first),
        ("EX-06", "EX-07", "EX-10"),
    ),
    Fault(
        "order of hooks: a new post-accumulate hook goes before the others",
        lambda: replaced(torch.Tensor, NAME, first),
        ("EX-10",),
    ),
    Fault("order of hooks: post-hooks come last", lambda: on_nodes(late), ("EX-07", "EX-10")),
    Fault("order of hooks: results of tensor hooks ignored", lambda: on_tensors(ignored), ("EX-04", "EX-07", "EX-08")),
    Fault("order of hooks: a module's tensors have a Node each", _one_node_a_tensor, ("EX-08",)),
    Fault("order of hooks: global full hooks come after the module's own", _globals_last, ("EX-10",)),
    Fault(
        "order of hooks: after a tensor hook, a gradient is retained as the next hook",
        lambda: replaced(torch.Tensor, "retain_grad", _retained_as_the_next_hook),
        ("EX-10",),
        since="2.1",
    ),
)
