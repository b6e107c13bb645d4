"""Faults in what hooks keep alive."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch.nn.modules import module
from torch.utils.hooks import BackwardHook

from ..autograd import on_nodes, on_tensors
from ..engine import Fault, called, calling, engine, replaced
from ..registering import edited
from .saved_tensors_hooks import crossing

Patch = Callable[[list[Any]], AbstractContextManager[None]]


def keeping(patch: Patch) -> Callable[[], AbstractContextManager[None]]:
    """A patch that has a list to keep things in, for as long as it holds."""

    @contextmanager
    def open_patch() -> Iterator[None]:
        things: list[Any] = []
        with patch(things):
            yield

    return open_patch


def helpers(alive: list[Any]) -> AbstractContextManager[None]:
    """Full hooks: their helpers are kept."""
    return engine("__init__", lambda original: lambda self, *args: (original(self, *args), alive.append(self))[0])


@contextmanager
def waiting(alive: list[Any]) -> Iterator[None]:
    """Full hooks: their helpers are kept until a hook is called."""
    with helpers(alive), calling(lambda hook, *args: (hook(*args), alive.clear())[0]):
        yield


def differentiable(alive: list[Any]) -> AbstractContextManager[None]:
    """Full hooks: gradients that have a graph are kept."""

    def change(hook: Any, module: Any, grad_input: Any, grad_output: Any) -> Any:
        alive.extend(g for g in grad_input if g is not None and g.requires_grad)
        return hook(module, grad_input, grad_output)

    return calling(change)


def errors(alive: list[Any]) -> AbstractContextManager[None]:
    """Full hooks: what they raise is kept, with the frames that it came through."""

    def change(hook: Any, *args: Any) -> Any:
        try:
            return hook(*args)
        except Exception as error:
            alive.append(error)
            raise

    return calling(change)


def failed(alive: list[Any]) -> AbstractContextManager[None]:
    """A backward that fails keeps the graph that it was called on."""

    def make(original: Any) -> Any:
        def backward(tensors: Any, *args: Any, **options: Any) -> None:
            try:
                original(tensors, *args, **options)
            except Exception:
                alive.append(tensors)
                raise

        return backward

    return replaced(torch.autograd, "backward", make)


def outputs() -> AbstractContextManager[None]:
    """A module with backward hooks keeps its last output."""

    def call(forward: Any, module: Any, args: Any) -> Any:
        vars(module)["_last"] = result = forward(*args)
        return result

    return called(call)


def tables() -> AbstractContextManager[None]:
    """A handle keeps the table that its hook is in."""

    def make(original: Any) -> Any:
        def init(self: Any, table: Any, **options: Any) -> None:
            original(self, table, **options)
            self.table = table

        return init

    return replaced(torch.utils.hooks.RemovableHandle, "__init__", make)


def removed(alive: list[Any]) -> AbstractContextManager[None]:
    """What a handle removes is kept."""

    def make(original: Any) -> Any:
        return lambda self: (alive.extend((self.hooks_dict_ref() or {}).values()), original(self))[1]

    return replaced(torch.utils.hooks.RemovableHandle, "remove", make)


def contexts(alive: list[Any]) -> AbstractContextManager[None]:
    """Contexts of hooks for saved tensors are kept when they are left."""
    return crossing(
        lambda original: lambda self: original(self),
        lambda original: lambda self, *error: (alive.append(self), original(self, *error))[1],
    )


def unremoved() -> AbstractContextManager[None]:
    """Multi-grad hooks cannot be removed."""
    return replaced(torch.autograd.graph._MultiHandle, "remove", lambda original: lambda self: None)


def held_weakly(hook: Any) -> Any:
    """The hook, as long as something else holds it."""
    held = weakref.ref(hook)

    def call(*args: Any) -> Any:
        alive = held()
        return alive and alive(*args)

    return call


FAULTS = (
    Fault(
        "lifetime: hooks on loading hold their module",
        lambda: edited(module._WrappedHook, "__init__", ("weakref.ref(module)", "lambda: module")),
        ("LT-02",),
        kinds=(),
        since="2.5",
    ),
    Fault("lifetime: graphs do not hold hooks on tensors", lambda: on_tensors(held_weakly), ("LT-13",), kinds=()),
    Fault(
        "lifetime: graphs do not hold hooks on Nodes", lambda: on_nodes(held_weakly, held_weakly), ("LT-13",), kinds=()
    ),
    Fault("lifetime: helpers of full hooks are kept", keeping(helpers), ("LT-01", "LT-02", "LT-03", "LT-07", "LT-08")),
    Fault("lifetime: helpers of full hooks are kept until a backward", keeping(waiting), ("LT-02",)),
    Fault("lifetime: gradients that have a graph are kept", keeping(differentiable), ("LT-03", "LT-08")),
    Fault("lifetime: what a full hook raises is kept", keeping(errors), ("LT-04", "LT-11")),
    Fault("lifetime: the graph of a backward that fails is kept", keeping(failed), ("LT-04", "LT-11")),
    Fault(
        "lifetime: full hooks keep the gradient of the output",
        lambda: edited(BackwardHook, "_set_user_hook", ("self.grad_outputs = None", "pass")),
        ("LT-12",),
        since="2.0",
    ),
    Fault(
        "lifetime: full hooks keep the gradient of the output where no input requires grad",
        lambda: edited(BackwardHook, "setup_output_hook", ("self.grad_outputs = None", "pass")),
        ("LT-12",),
        since="2.0",
    ),
    Fault(
        "lifetime: multi-grad hooks keep the gradients",
        lambda: edited(torch.autograd.graph, "register_multi_grad_hook", ("del buffer[id]", "pass")),
        ("LT-12",),
        since="2.0",
    ),
    Fault("lifetime: modules keep their last output", outputs, ("LT-06",)),
    Fault("lifetime: handles keep the table of hooks", tables, ("LT-07",)),
    Fault("lifetime: removed hooks are kept", keeping(removed), ("LT-05", "LT-08")),
    Fault("lifetime: contexts of saved tensors are kept", keeping(contexts), ("LT-09",), since="1.10"),
    Fault("lifetime: multi-grad hooks cannot be removed", unremoved, ("LT-05", "LT-10"), since="2.4"),
)
