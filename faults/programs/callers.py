"""Faults of calls that are functional, in a checkpoint, in a thread, without a graph, or of inference.

And one that takes three choices: the lane of a hook, that it raises, and a host.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch
from torch.utils import checkpoint

from ..engine import replaced
from .interactions import _called_plainly
from .sequences import _cleared
from .situations import CALLS, MODULE, TABLES, _fault, _swallowed, _within


def _past_hooks(original: Any) -> Any:
    """A functional call that goes past the hooks of the net itself."""
    return lambda net, values, args: net.forward(*args)


def _raising_in(where: Callable[[], bool], act: Callable[[Any, BaseException], object]) -> AbstractContextManager[None]:
    """The call of a module that raises does ``act`` as well, where it is in such a place."""

    def make(original: Any) -> Any:
        def call(self: Any, *args: Any, **options: Any) -> Any:
            try:
                return original.__get__(self)(*args, **options)
            except BaseException as error:
                if where():
                    act(self, error)
                raise

        return call

    return replaced(MODULE, "__call__", make)


def _hookless(module: Any, error: BaseException) -> None:
    _cleared(*TABLES)(module)


def _as_another(module: Any, error: BaseException) -> None:
    raise RuntimeError(str(error)) from None


def _in_a_thread() -> bool:
    return threading.current_thread() is not threading.main_thread()


def _forgotten_by_checkpoints(original: Any) -> Any:
    """A checkpoint that raises takes the hooks of what it calls away."""

    def call(net: Any, *args: Any, **options: Any) -> Any:
        try:
            return original(net, *args, **options)
        except BaseException as error:
            _hookless(net, error)
            raise

    return call


def _lost_where_parametrized(original: Any) -> Any:
    """Registers a legacy hook whose error is lost where the module is parametrized."""

    def register(self: Any, hook: Any) -> Any:
        lost = "parametrizations" in vars(self)["_modules"]
        return original(self, partial(_swallowed, hook) if lost else hook)

    return register


FAULTS = (
    _fault("a functional call loses hooks", lambda: replaced(torch.func, "functional_call", _past_hooks), CALLS),
    _fault(
        "a checkpoint calls modules again without their hooks",
        lambda: _called_plainly(lambda module: torch._C._current_graph_task_id() >= 0),
        CALLS,
    ),
    _fault("inference mode loses hooks", _within(torch.is_inference_mode_enabled), CALLS),
    _fault("no_grad loses hooks", _within(lambda: not torch.is_grad_enabled()), CALLS),
    _fault("an error in a thread takes hooks away", lambda: _raising_in(_in_a_thread, _hookless), CALLS),
    _fault(
        "an error in inference mode takes hooks away",
        lambda: _raising_in(torch.is_inference_mode_enabled, _hookless),
        CALLS,
    ),
    _fault("an error in a thread becomes another one", lambda: _raising_in(_in_a_thread, _as_another), CALLS),
    _fault(
        "an error in a checkpoint takes hooks away",
        lambda: replaced(checkpoint, "checkpoint", _forgotten_by_checkpoints),
        CALLS,
    ),
    _fault(
        "the error of a legacy hook on a parametrized module is lost",
        lambda: replaced(MODULE, "register_backward_hook", _lost_where_parametrized),
        CALLS,
    ),
)
