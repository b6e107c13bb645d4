"""Faults in how torch.compile treats backward hooks and hooks on tensors."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

import torch

from ..engine import Fault, added, replaced
from ..registering import edited


def _dropped(owner: Any, name: str) -> AbstractContextManager[None]:
    """Has a method register nothing."""
    return replaced(owner, name, lambda original: lambda self, hook, *args, **kwargs: None)


def _first(original: Any) -> Any:
    """Has a hook on a tensor come before those that it had."""

    def register(self: Any, hook: Any) -> Any:
        before = {**(self._backward_hooks or {})}
        handle = original(self, hook)
        for key, earlier in before.items():
            del self._backward_hooks[key]
            self._backward_hooks[key] = earlier
        return handle

    return register


def _without_grad(original: Any) -> Any:
    """Has compiled code register no hook where grad mode is off."""
    return lambda self, tensor, *args: original(self, tensor, *args) if torch.is_grad_enabled() else tensor


def _on_a_view(original: Any) -> Any:
    """Has compiled code register hooks on views, through which goes what is computed from then on alone."""
    return lambda self, tensor, *args: original(self, tensor.view_as(tensor), *args)


def _last_left_out(_: Any, result: Any, *args: Any, bw_state: Any, hooks_name: str, module_name: str) -> Any:
    """Calls the hooks of a module from compiled autograd's graph, without the last."""
    module = getattr(bw_state, module_name)
    for hook in getattr(bw_state, hooks_name)[:-1]:
        changed = hook(module, result, *args)
        result = result if changed is None else changed
    return result


def _op() -> Any:
    """What compiled code calls to register a hook on what it computes."""
    return import_module("torch._higher_order_ops.register_hook").RegisterHookOp


FAULTS = (
    Fault(
        "torch.compile: full backward hooks are dropped",
        lambda: _dropped(torch.nn.Module, "register_full_backward_hook"),
        ("TC-04", "TC-05", "TC-08", "TC-11", "TC-13"),
        kinds=(),
    ),
    Fault(
        "torch.compile: full backward pre-hooks are dropped",
        lambda: _dropped(torch.nn.Module, "register_full_backward_pre_hook"),
        ("TC-04", "TC-12"),
        kinds=(),
    ),
    Fault(
        "torch.compile: hooks on parameters are dropped",
        lambda: _dropped(torch.Tensor, "register_hook"),
        ("TC-08",),
        kinds=(),
    ),
    Fault(
        "torch.compile: retain_grad is forgotten",
        lambda: added(torch.Tensor, "retain_grad", lambda self: None),
        ("TC-14",),
        kinds=(),
        since="2.7",
    ),
    Fault(
        "torch.compile: post-accumulate-grad hooks are dropped",
        lambda: _dropped(torch.Tensor, "register_post_accumulate_grad_hook"),
        ("TC-15",),
        kinds=(),
    ),
    Fault(
        "torch.compile: hooks that compiled code registers on what it computes are dropped",
        lambda: replaced(_op(), "__call__", lambda original: lambda self, tensor, *args: tensor),
        ("TC-17",),
        kinds=(),
        since="2.13",
    ),
    Fault(
        "torch.compile: hooks that compiled code registers without grad mode are dropped",
        lambda: replaced(_op(), "__call__", _without_grad),
        ("TC-17",),
        kinds=(),
        since="2.13",
    ),
    Fault(
        "torch.compile: hooks that compiled code registers are on a view of the tensor",
        lambda: replaced(_op(), "__call__", _on_a_view),
        ("TC-17",),
        kinds=(),
        since="2.13",
    ),
    Fault(
        "torch.compile: hooks that compiled code registers on what it is given are dropped",
        lambda: replaced(
            import_module("torch._dynamo.side_effects").SideEffects,
            "codegen_hooks",
            lambda original: lambda self, cg: self.tensor_hooks.clear(),
        ),
        ("TC-17",),
        kinds=(),
    ),
    Fault(
        "tensor hooks: the last that is registered is the first to be called",
        lambda: replaced(torch.Tensor, "register_hook", _first),
        ("TC-18",),
        kinds=(),
    ),
    Fault(
        "tensor hooks: no gradient is retained",
        lambda: added(torch.Tensor, "retain_grad", lambda self: None),
        ("TC-19",),
        kinds=(),
    ),
    Fault(
        "tensor hooks: they are dropped",
        lambda: _dropped(torch.Tensor, "register_hook"),
        ("TC-20", "TC-28"),
        kinds=(),
    ),
    Fault(
        "tensor hooks: their handles remove nothing",
        lambda: replaced(torch.utils.hooks.RemovableHandle, "remove", lambda original: lambda self: None),
        ("TC-21",),
        kinds=(),
    ),
    Fault(
        "post-accumulate-grad hooks: any tensor takes one",
        lambda: _dropped(torch.Tensor, "register_post_accumulate_grad_hook"),
        ("TC-22",),
        kinds=(),
    ),
    Fault(
        "torch.compile: compiled autograd leaves out the last backward hook of a module",
        lambda: replaced(
            import_module("torch._dynamo.variables.distributed"),
            "call_module_hooks_from_backward_state",
            lambda original: _last_left_out,
        ),
        ("TC-26",),
        kinds=(),
    ),
    Fault(
        "torch.compile: compiled autograd drops hooks that compiled code registers on what it computes",
        lambda: edited(
            import_module("torch._dynamo.variables.tensor").TensorVariable,
            "_method_register_hook",
            ("register_hook = getattr(tensor, name)", "register_hook = (lambda hook: None)"),
        ),
        ("TC-26",),
        kinds=(),
        since="2.13",
    ),
)
