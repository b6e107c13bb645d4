"""Faults that only compiled modules show, of ``torch.compile`` and of ``Module.compile``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch

from ..engine import Fault, replaced
from .clauses_on_hosts import MODULE, _fault, _where


def _is_compiled(module: Any) -> bool:
    """An OptimizedModule, by name: torch imports its class late."""
    return type(module).__name__ == "OptimizedModule"


def _has_parts(module: Any) -> bool:
    """Whether it is a container; of an OptimizedModule, whether the module in it is one."""
    return any(True for _ in getattr(module, "_orig_mod", module).children())


def _irremovable(test: Callable[[Any], bool], name: str) -> AbstractContextManager[None]:
    """A handle of a module that is such removes nothing."""

    def make(original: Any) -> Any:
        def register(self: Any, *args: Any, **options: Any) -> Any:
            handle = original(self, *args, **options)
            if test(self):
                handle.remove = lambda: None
            return handle

        return register

    return replaced(MODULE, name, make)


def _compiled_without_its_hooks(_: Any) -> Any:
    """What is compiled in place is the forward of a module rather than its call."""

    def compile(self: Any, **options: Any) -> None:
        self._compiled_call_impl = torch.compile(self.forward, **options)

    return compile


def _containers_compiled_without_their_hooks(original: Any) -> Any:
    """The same of modules with others in them alone."""
    past = _compiled_without_its_hooks(original)

    def compile(self: Any, **options: Any) -> None:
        (past if _has_parts(self) else original)(self, **options)

    return compile


def _called_past_hooks_if_compiled_with_backward(original: Any) -> Any:
    """What is compiled in place, its backward included, is the forward of a module rather than its call."""
    past = _compiled_without_its_hooks(original)

    def compile(self: Any, **options: Any) -> None:
        (past if options.get("backend") == "aot_eager" else original)(self, **options)

    return compile


_of_compiled = partial(_fault, clause="HO-07")

FAULTS: tuple[Fault, ...] = (
    _of_compiled("an OptimizedModule takes no forward hooks", lambda: _where(_is_compiled), hosts=("OptimizedModule",)),
    _of_compiled(
        "an OptimizedModule forgets that a pre-hook was removed",
        lambda: _irremovable(_is_compiled, "register_forward_pre_hook"),
        hosts=("OptimizedModule",),
    ),
    _of_compiled(
        "an OptimizedModule takes no full backward pre-hooks",
        lambda: _where(_is_compiled, "register_full_backward_pre_hook"),
        hosts=("OptimizedModule",),
    ),
    _of_compiled(
        "what is compiled in place is called past its hooks",
        lambda: replaced(MODULE, "compile", _compiled_without_its_hooks),
        since="2.4",
        hosts=("Module.compile",),
    ),
    _of_compiled(
        "an OptimizedModule of a container takes no pre-hooks",
        lambda: _where(lambda module: _is_compiled(module) and _has_parts(module), "register_forward_pre_hook"),
        since="2.4",
        hosts=("OptimizedModule of a container",),
    ),
    _of_compiled(
        "a container that is compiled in place is called past its hooks",
        lambda: replaced(MODULE, "compile", _containers_compiled_without_their_hooks),
        since="2.4",
        hosts=("Module.compile",),
    ),
    _of_compiled(
        "what is compiled in place with its backward is called past its hooks",
        lambda: replaced(MODULE, "compile", _called_past_hooks_if_compiled_with_backward),
        since="2.4",
        hosts=("Module.compile with its backward",),
    ),
)
