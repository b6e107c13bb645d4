"""Faults in how forward hooks, and forward pre-hooks with them, are called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ..engine import Fault, added, replaced
from ..registering import call, deaf, dropped, every_second, local, silenced


def _under_grad(hook: Any) -> Any:
    """The hook, called where grad is enabled."""
    return lambda *arguments: hook(*arguments) if torch.is_grad_enabled() else None


def _again(hook: Any) -> Any:
    """The hook, after which ``forward`` is run once more."""

    def change(module: Any, args: Any, *rest: Any) -> Any:
        result = hook(module, args, *rest)
        return module.forward(*args) if result is None else result

    return change


def _first(original: Any) -> Any:
    """Puts every new hook before the others."""

    def register(self: Any, hook: Any, **options: Any) -> Any:
        handle = original(self, hook, **options)
        handle.hooks_dict_ref().move_to_end(handle.id, last=False)
        return handle

    return register


def _of_users(original: Any) -> Any:
    """Takes no hooks on modules that torch.nn defines."""

    def register(self: Any, hook: Any, **options: Any) -> Any:
        return original(self, dropped(hook) if type(self).__module__.startswith("torch.nn") else hook, **options)

    return register


@contextmanager
def _calling_forward_calls_the_module() -> Iterator[None]:
    inside: set[int] = set()

    def entering(original: Any) -> Callable[..., Any]:
        def enter(self: Any, *args: Any, **kwargs: Any) -> Any:
            inside.add(id(self))
            try:
                return original(self, *args, **kwargs)
            finally:
                inside.discard(id(self))

        return enter

    def get(self: Any, name: str) -> Any:
        outside = name == "forward" and id(self) not in inside
        return self.__call__ if outside else object.__getattribute__(self, name)

    with replaced(torch.nn.Module, "__call__", entering), added(torch.nn.Module, "__getattribute__", get):
        yield


PLAIN = "hook(self, args, result)"
"""How a forward hook is called that was registered without options."""


FAULTS = (
    Fault(
        "a forward hook is called every second time",
        lambda: local("forward_hook", every_second),
        ("FW-08", "CP-08"),
    ),
    Fault(
        "a forward hook is skipped under no_grad",
        lambda: local("forward_hook", _under_grad),
        ("FW-08", "CP-02"),
    ),
    Fault(
        "a forward hook is dropped",
        lambda: local("forward_hook", dropped),
        ("FW-08", "FW-09", "FW-19", "CP-04", "CP-01", "CP-05"),
    ),
    Fault(
        "a forward hook gets the first argument alone",
        lambda: call(("hook_result = hook(self, args, result)", "hook_result = hook(self, args[:1], result)")),
        ("FW-09", "GL-04"),
        since="2.1",
    ),
    Fault(
        "a forward hook gets keyword arguments unasked",
        lambda: call(("hook_id in self._forward_hooks_with_kwargs", "hook_id in self._forward_hooks")),
        ("FW-09", "FW-10", "GL-15"),
        since="2.1",
    ),
    Fault(
        "a forward hook with_kwargs gets no keyword arguments",
        lambda: call(("hook(self, args, kwargs, result)", "hook(self, args, {}, result)")),
        ("FW-10", "FW-17", "GL-11"),
        since="2.6",
    ),
    Fault(
        "a forward hook's result is ignored",
        lambda: local("forward_hook", silenced),
        ("FW-11", "FW-15", "FW-19", "FW-21", "FW-23"),
    ),
    Fault(
        "a forward hook's 0, False and empty tuple count as None",
        lambda: call(("if hook_result is not None:", "if isinstance(hook_result, torch.Tensor) or hook_result:")),
        ("FW-11", "GL-03"),
        since="2.1",
    ),
    Fault(
        "a forward hook makes forward run again",
        lambda: local("forward_hook", _again),
        ("FW-08", "FW-12"),
    ),
    Fault(
        "a forward hook gets named tuples as plain ones",
        lambda: call(
            ("forward_call(*args, **kwargs)\n", "forward_call(*args, **kwargs); result = _plain(result)\n"),
            ("result = None", "_plain = lambda r: tuple(r) if isinstance(r, tuple) else r; result = None"),
        ),
        ("FW-13",),
        since="2.1",
    ),
    Fault(
        "a forward hook is put before the others",
        lambda: replaced(torch.nn.Module, "register_forward_hook", _first),
        ("FW-14", "FW-15", "FW-16", "FW-22", "GL-06", "HD-03"),
    ),
    Fault(
        "a forward hook's prepend is ignored",
        lambda: deaf(torch.nn.Module, "register_forward_hook", prepend=False),
        ("FW-15", "FW-16", "FW-18", "HD-04"),
        since="2.0",
    ),
    Fault(
        "a forward pre-hook's prepend is ignored",
        lambda: deaf(torch.nn.Module, "register_forward_pre_hook", prepend=False),
        ("FW-15", "FW-16", "HD-04"),
        since="2.0",
    ),
    Fault(
        "a forward hook runs when forward is called",
        _calling_forward_calls_the_module,
        ("FW-19",),
    ),
    Fault(
        "a forward hook on a module of torch.nn is dropped",
        lambda: replaced(torch.nn.Module, "register_forward_hook", _of_users),
        ("FW-20", "CP-07"),
    ),
    Fault(
        "forward hooks get copies of the lists among the arguments",
        lambda: call((PLAIN, "hook(self, tuple(list(a) if type(a) is list else a for a in args), result)")),
        ("FW-09",),
        since="2.1",
    ),
    Fault(
        "forward hooks get the arguments from before two pre-hooks",
        lambda: call(
            ("result = None", "result, came = None, args"),
            (PLAIN, "hook(self, came if len(self._forward_pre_hooks) > 1 else args, result)"),
        ),
        ("FW-09",),
        since="2.1",
    ),
    Fault(
        "what a forward hook returns is ignored where it has no dimension",
        lambda: call(
            ("if hook_result is not None:", "if hook_result is not None and getattr(hook_result, 'shape', 0) != ():")
        ),
        ("FW-11",),
        since="2.1",
    ),
    Fault(
        "what a forward hook returns is ignored where it has another dtype",
        lambda: call(
            (
                "if hook_result is not None:",
                "if hook_result is not None and type(hook_result) is not type(result) "
                "or getattr(hook_result, 'dtype', 0) is getattr(result, 'dtype', 1):",
            )
        ),
        ("FW-11",),
        since="2.1",
    ),
    Fault(
        "forward hooks get integers as floating-point numbers",
        lambda: call(
            (PLAIN, "hook(self, args, result.float() if getattr(result, 'dtype', None) is torch.int64 else result)")
        ),
        ("FW-13",),
        since="2.1",
    ),
    Fault(
        "forward hooks get a tensor of a subclass as a plain one",
        lambda: call(
            (
                PLAIN,
                "hook(self, args, result.as_subclass(torch.Tensor) "
                "if getattr(type(result), '__base__', None) is torch.Tensor else result)",
            )
        ),
        ("FW-13",),
        since="2.1",
    ),
)
