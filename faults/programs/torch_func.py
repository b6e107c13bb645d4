"""Faults in how the transforms of torch.func treat hooks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from typing import Any

import torch
from torch.nn.utils import stateless

from ..engine import Fault, replaced
from ..registering import edited


@contextmanager
def unhooked(module: Any) -> Iterator[None]:
    """Takes the hooks of a call off a module and what is in it, for as long as it is open."""
    names = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
    tables = [getattr(m, name) for m in module.modules() for name in names]
    contents = [dict(table) for table in tables]
    for table in tables:
        table.clear()
    try:
        yield
    finally:
        for table, content in zip(tables, contents):
            table.update(content)


def past_hooks(owner: Any, name: str) -> AbstractContextManager[None]:
    """Has a function of a module work on the module without its hooks."""

    def make(original: Any) -> Any:
        def function(module: Any, *args: Any, **kwargs: Any) -> Any:
            with unhooked(module):
                return original(module, *args, **kwargs)

        return function

    return replaced(owner, name, make)


def _vmap_past_hooks() -> AbstractContextManager[None]:
    def make(original: Any) -> Any:
        def vmap(module: Any, *args: Any, **kwargs: Any) -> Any:
            def call(*inputs: Any) -> Any:
                with unhooked(module):
                    return original(module, *args, **kwargs)(*inputs)

            return call

        return vmap

    return replaced(import_module("torch.func"), "vmap", make)


def _kept_parameters() -> AbstractContextManager[None]:
    def make(original: Any) -> Any:
        def functional_call(module: Any, parameters: Any, *args: Any, **kwargs: Any) -> Any:
            output = original(module, parameters, *args, **kwargs)
            for name, value in parameters.items():
                module._parameters[name] = value
            return output

        return functional_call

    return replaced(import_module("torch.func"), "functional_call", make)


@contextmanager
def unseen_saved_tensors_hooks() -> Iterator[None]:
    """Has the context of saved-tensors hooks do nothing."""
    hooks = torch.autograd.graph.saved_tensors_hooks
    with ExitStack() as stack:
        stack.enter_context(replaced(hooks, "__enter__", lambda original: lambda self: None))
        stack.enter_context(replaced(hooks, "__exit__", lambda original: lambda self, *error: None))
        yield


def never_removed() -> AbstractContextManager[None]:
    """Has handles of hooks remove nothing."""
    return replaced(torch.utils.hooks.RemovableHandle, "remove", lambda original: lambda self: None)


def _hookless_after_errors(original: Any) -> Any:
    """A call that raises leaves the module without its forward hooks."""

    def functional_call(module: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(module, *args, **kwargs)
        except Exception:
            module._forward_hooks.clear()
            raise

    return functional_call


def _left_after_errors() -> AbstractContextManager[None]:
    """A module gets its own parameters back where no error comes."""
    return edited(stateless, "_reparametrize_module", ("try:", "if True:"), ("finally:", "if True:"))


def _primal(original: Any) -> Any:
    """A call of a module whose output has lost its tangent."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        output = original(self, *args, **kwargs)
        return torch.autograd.forward_ad.unpack_dual(output).primal

    return call


def _of_the_first(original: Any) -> Any:
    """A call with several dictionaries of parameters takes the first alone."""

    def call(module: Any, given: Any, *args: Any, **kwargs: Any) -> Any:
        return original(module, given if isinstance(given, dict) else given[0], *args, **kwargs)

    return call


FAULTS = (
    Fault(
        "torch.func.functional_call: hooks are left out",
        lambda: past_hooks(import_module("torch.func"), "functional_call"),
        ("TF-01", "TF-02"),
        kinds=(),
    ),
    Fault(
        "torch.func.functional_call: keyword arguments are lost",
        lambda: edited(stateless, "_functional_call", ("module(*args, **kwargs)", "module(*args, **{})")),
        ("TF-01",),
        kinds=(),
        since="2.13",
    ),
    Fault(
        "torch.func.functional_call: of several dictionaries the first counts",
        lambda: replaced(import_module("torch.func"), "functional_call", _of_the_first),
        ("TF-01",),
        kinds=(),
    ),
    Fault(
        "torch.func.functional_call: the names of what is tied stay in the dictionary",
        lambda: edited(
            stateless, "_untie_named_tensors_map", ("parameters_and_buffers.copy()", "parameters_and_buffers")
        ),
        ("TF-12",),
        kinds=(),
        since="2.13",
    ),
    Fault(
        "torch.func.functional_call: what a hook assigns is lost",
        lambda: edited(stateless, "_reparametrize_module", ("parameters_and_buffers.update(", "dict().update(")),
        ("TF-02",),
        kinds=(),
        since="2.13",
    ),
    Fault(
        "torch.func.functional_call: the given parameters stay in the module",
        _kept_parameters,
        ("TF-02",),
        kinds=(),
    ),
    Fault("torch.func.vmap: hooks are left out", _vmap_past_hooks, ("TF-03",), kinds=()),
    Fault(
        "torch.func.vmap: a hook on a parameter is dropped",
        lambda: replaced(torch.Tensor, "register_hook", lambda original: lambda self, hook: None),
        ("TF-04", "TF-11"),
        kinds=(),
    ),
    Fault(
        "torch.func.grad, torch.func.jacrev: full backward hooks are dropped in silence",
        lambda: replaced(
            torch.nn.Module, "register_full_backward_hook", lambda original: lambda self, hook, prepend=False: None
        ),
        ("TF-05", "TF-06"),
        kinds=(),
    ),
    Fault(
        "torch.func.grad: saved-tensors hooks are dropped in silence",
        unseen_saved_tensors_hooks,
        ("TF-07",),
        kinds=(),
    ),
    Fault("torch.func.grad: a removed hook is there still", never_removed, ("TF-08", "TF-09"), kinds=()),
    Fault(
        "torch.func.functional_call: the given parameters stay after an error",
        _left_after_errors,
        ("TF-10",),
        (),
        "2.0",
    ),
    Fault(
        "torch.func.functional_call: an error takes the hooks along",
        lambda: replaced(import_module("torch.func"), "functional_call", _hookless_after_errors),
        ("TF-10",),
        kinds=(),
    ),
    Fault(
        "torch.func.functional_call: a parameter is given by one name only",
        lambda: replaced(stateless, "_untie_named_tensors_map", lambda original: lambda module, given: given),
        ("TF-12",),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "a module hands no tangent on",
        lambda: replaced(torch.nn.Module, "__call__", _primal),
        ("TF-13",),
        kinds=(),
        since="2.0",
    ),
)
