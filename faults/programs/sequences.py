"""Faults in what acts do to hooks of another sort: a change, a registration or a removal that takes others along."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any

import torch
from torch.autograd import graph
from torch.nn.modules import module as torch_module

from ..engine import Fault, fetched, replaced
from ..registering import edited
from .clauses_on_hosts import _held_weakly
from .situations import _dispatching, _in_a_function_mode, _step_hooks, _swallowed, _tensor

MODULE, HANDLE, OPTIMIZER = torch.nn.Module, torch.utils.hooks.RemovableHandle, torch.optim.Optimizer


def _after(owner: Any, name: str, act: Callable[[Any], object]) -> AbstractContextManager[None]:
    """A method that does ``act(self)`` as well."""

    def make(original: Any) -> Any:
        def method(self: Any, *args: Any, **options: Any) -> Any:
            result = original(self, *args, **options)
            act(self)
            return result

        return method

    return replaced(owner, name, make)


def _cleared(*tables: str) -> Callable[[Any], None]:
    """Empties tables of hooks."""

    def clear(owner: Any) -> None:
        for table in tables:
            (getattr(owner, table, None) or {}).clear()

    return clear


def _of_parameters(module: Any) -> None:
    for parameter in module.parameters():
        _cleared("_backward_hooks", "_post_accumulate_grad_hooks")(parameter)


def _all_registration_hooks(handle: Any) -> None:
    if handle.hooks_dict_ref() is torch_module._global_parameter_registration_hooks:
        torch_module._global_parameter_registration_hooks.clear()


def _identity(original: Any) -> Any:
    """Hooks on what is saved, of which the one that unpacks is not called."""
    return lambda self, pack, unpack: original(self, pack, lambda value: value)


def _raising(owner: Any, name: str, act: Callable[[Any], object]) -> AbstractContextManager[None]:
    """A method that does ``act(self)`` where it raises."""

    def make(original: Any) -> Any:
        def method(self: Any, *args: Any, **options: Any) -> Any:
            try:
                return original(self, *args, **options)
            except BaseException:
                act(self)
                raise

        vars(method).update(vars(original))  # torch marks the steps that call hooks already
        return method

    return replaced(owner, name, make)


def _while_dispatching(module: Any) -> None:
    if _dispatching():
        _cleared("_forward_hooks")(module)


def _staying_in_a_backward(original: Any) -> Any:
    """A handle of a hook on calls does nothing in a backward."""

    def remove(handle: Any) -> None:
        table = handle.hooks_dict_ref()
        owners = (each for each in gc.get_referrers(table) if isinstance(each, dict))
        names = ("_forward_hooks", "_forward_pre_hooks")
        on_calls = any(table is owner.get(name) for owner in owners for name in names)
        if not on_calls or torch._C._current_graph_task_id() < 0:
            original(handle)

    return remove


def _lost_by_copies() -> AbstractContextManager[None]:
    """A copy of a module that was called is without its forward hooks."""
    stack = ExitStack()
    stack.enter_context(_after(MODULE, "__call__", lambda module: vars(module).update(called=True)))

    def make(original: Any) -> Any:
        def restore(self: Any, state: Any) -> None:
            original(self, state)
            if "called" in state:
                _cleared("_forward_hooks")(self)

        return restore

    stack.enter_context(replaced(MODULE, "__setstate__", make))
    return stack


def _fault(what: str, patch: Callable[[], AbstractContextManager[None]], since: str = "2.1") -> Fault:
    return Fault(f"sequences: {what}", patch, ("SM-02",), since=since)


def _with_grad(original: Any) -> Any:
    """A handle that does nothing under no_grad, for hooks on modules and on tensors alike."""
    return lambda handle: original(handle) if torch.is_grad_enabled() else None


def _along() -> AbstractContextManager[None]:
    """Removes a hook and, where it is gone already, the first that is left."""
    return edited(
        HANDLE,
        "remove",
        ("for ref in", "elif hooks_dict:\n        del hooks_dict[next(iter(hooks_dict))]\n\n    for ref in"),
    )


def _in_a_call() -> bool:
    """Whether a module is being called."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_name != "_call_impl":
        frame = frame.f_back
    return frame is not None


FAULTS = (
    _fault(
        "retaining a gradient takes the hooks of the result away",
        lambda: _after(torch.Tensor, "retain_grad", _cleared("_backward_hooks")),
    ),
    _fault("freezing takes the hooks of parameters away", lambda: _after(MODULE, "requires_grad_", _of_parameters)),
    _fault("moving takes the hooks of parameters away", lambda: _after(MODULE, "to", _of_parameters)),
    _fault(
        "one hook on the registration of parameters takes all away as it goes",
        lambda: _after(HANDLE, "remove", _all_registration_hooks),
    ),
    _fault("hooks that unpack are not called", lambda: replaced(graph.saved_tensors_hooks, "__init__", _identity)),
    _fault(
        "a hook before steps takes those after them away",
        lambda: _after(OPTIMIZER, "register_step_pre_hook", _cleared("_optimizer_step_post_hooks")),
    ),
    _fault(
        "saving an optimizer takes hooks on loading it away",
        lambda: _after(OPTIMIZER, "state_dict", _cleared("_optimizer_load_state_dict_post_hooks")),
        since="2.2",
    ),
    _fault(
        "saving takes hooks on loading away",
        lambda: _after(MODULE, "state_dict", _cleared("_load_state_dict_pre_hooks")),
    ),
    _fault(
        "zeroing gradients takes hooks on steps away",
        lambda: _after(OPTIMIZER, "zero_grad", _cleared("_optimizer_step_pre_hooks")),
    ),
    _fault("full hooks go as their module is dropped", _held_weakly),
    _fault(
        "an error of a step takes the hooks after steps away",
        lambda: _raising(torch.optim.SGD, "step", _cleared("_optimizer_step_post_hooks")),
    ),
    _fault(
        "an error of a call in a dispatch mode takes forward hooks away",
        lambda: _raising(MODULE, "__call__", _while_dispatching),
    ),
    _fault(
        "an error of saving takes hooks on loading away",
        lambda: _raising(MODULE, "state_dict", _cleared("_load_state_dict_post_hooks")),
    ),
    _fault(
        "the error of a hook on a tensor is lost",
        lambda: _tensor(lambda tensor, hook: lambda *given: _swallowed(hook, *given)),
    ),
    _fault("a copy of a module that was called is without forward hooks", _lost_by_copies),
    _fault(
        "a hook that is called in a backward removes none of those on calls",
        lambda: replaced(HANDLE, "remove", _staying_in_a_backward),
    ),
    _fault("the last legacy hook is left out", partial(fetched, lambda module, hooks: hooks[:-1])),
    _fault("a hook that is removed a second time takes the next one along", _along),
    _fault(
        "a tensor hook that is registered in a dispatch mode is not called",
        lambda: _tensor(lambda tensor, hook: (lambda *given: None) if _dispatching() else hook),
    ),
    _fault(
        "a step hook that is registered in a function mode is not called",
        lambda: _step_hooks(lambda optimizer, hook: (lambda *given: None) if _in_a_function_mode() else hook),
    ),
    _fault(
        "a tensor hook that is registered under autocast is not called",
        lambda: _tensor(lambda tensor, hook: (lambda *given: None) if torch.is_autocast_cpu_enabled() else hook),
    ),
    _fault(
        "a tensor hook that is registered under no_grad is not called",
        lambda: _tensor(lambda tensor, hook: hook if torch.is_grad_enabled() else (lambda *given: None)),
    ),
    _fault(
        "a hook on steps that is registered in inference mode is not called",
        lambda: _step_hooks(
            lambda optimizer, hook: (lambda *given: None) if torch.is_inference_mode_enabled() else hook
        ),
    ),
    _fault("a handle that is removed under no_grad leaves its hook", lambda: replaced(HANDLE, "remove", _with_grad)),
    _fault(
        "a step hook that a forward registers is not called",
        lambda: _step_hooks(lambda optimizer, hook: (lambda *given: None) if _in_a_call() else hook),
    ),
)
