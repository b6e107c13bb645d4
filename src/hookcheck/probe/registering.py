"""How are hooks of a kind put on all that the kind is about? They record what they are given, and those that act change
it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import torch

from hookcheck.oracle.acts import share
from hookcheck.probe.copying import asks, copied
from hookcheck.probe.kinds import FORWARD, OUTPUT, POST_ACCUMULATE, HookKind
from hookcheck.probe.observation import Copy, Event


class Network(Protocol):
    """What hooks are put on: modules by path, parameters and inputs by name."""

    @property
    def modules(self) -> Mapping[str, torch.nn.Module]:
        """By dotted path; the root's is empty."""

    @property
    def parameters(self) -> Mapping[str, torch.nn.Parameter]:
        """By dotted name."""

    @property
    def inputs(self) -> Mapping[str, torch.Tensor]:
        """By name."""


Record = Callable[..., Any]
"""Takes the path under which a call of a hook goes (None for a global hook), the module or other object that it was
given, and the other arguments; gives what the hook returns."""

OWNERS: dict[str, Any] = {
    "module": torch.nn.Module,
    "global": torch.nn.modules.module,
    "leaf": torch.Tensor,
    "leaves": getattr(torch.autograd, "graph", None),
    "output": torch.Tensor,
    "node": type(torch.zeros((), requires_grad=True).exp().grad_fn),
    "run": getattr(torch.autograd, "graph", None),
}
"""What the functions that register hooks are attributes of, by scope."""

PREPEND = hasattr(torch.nn.Module, "register_full_backward_pre_hook")
ALWAYS_CALL = hasattr(torch.nn.modules.module, "_global_forward_hooks_always_called")
"""Whether this torch can put a hook before others, and call a forward hook after an exception."""


@contextmanager
def registered(
    hook: HookKind, built: Network, chained: list[tuple[int, Event]], keep: Callable[[Any], Copy] = copied
) -> Iterator[None]:
    """While it is open, hooks of a kind are there; every call of one is appended to ``chained``.

    With each event stands which hook of a chain was called, counted from 0 in the order in which they are due.
    ``keep`` is what stays of each argument.
    """
    modules = built.modules
    paths = {id(module): path for path, module in modules.items()}
    counts: dict[tuple[int, str], int] = {}

    def record(link: int, registered: str | None, subject: Any, *arguments: Any) -> Any:
        given = paths.get(id(subject))
        path = registered if registered is not None else given or ""
        # Tensors are copied at once, since torch may go on to change or free them.
        number = counts.get((link, path), 0)
        event = Event(hook.name, path, number, given, tuple(map(keep, arguments)), asks(arguments))
        chained.append((link, event))
        counts[link, path] = number + 1
        return None if hook.observes else acted(hook, link, *arguments)

    first: Record = partial(record, 0)
    if hook.scope == "run":
        with _saving(hook, first):
            yield
        return
    kept: list[tuple[str, Any]] = []
    leaves = {name: leaf for named in (built.parameters, built.inputs) for name, leaf in named.items()}
    wanting = {name: leaf for name, leaf in leaves.items() if leaf.requires_grad}
    if hook.scope == "global":
        getattr(torch.nn.modules.module, hook.register)(partial(first, None))
    elif hook.scope == "module":
        for path, module in modules.items():
            getattr(module, hook.register)(partial(first, path), **({"with_kwargs": True} if hook.kwargs else {}))
    elif hook.scope == "leaves":
        # Its handle is a context that removes it: torch would else free neither the hook nor the leaves.
        with getattr(torch.autograd.graph, hook.register)(
            [*wanting.values()], lambda gradients: first("", None, dict(zip(wanting, gradients)))
        ):
            yield
        return
    elif hook.scope == "leaf":
        for name, leaf in wanting.items():
            getattr(leaf, hook.register)(_on_leaf(hook, name, first))
    else:
        for path, module in modules.items():
            module.register_forward_hook(partial(_watch, hook, path, first, kept))
    for path, module in modules.items() if hook.then else ():
        # The hook that is registered first is called last where the other one can be put before it.
        last, middle = (2, 1) if PREPEND else (1, 2)
        settings = {"prepend": True} if PREPEND else {}
        if ALWAYS_CALL and hook.call == FORWARD:
            settings["always_call"] = True
        getattr(module, hook.then)(partial(record, last, path))
        getattr(module, hook.then)(partial(record, middle, path), **settings)
    try:
        yield
        for name, tensor in kept:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a torch that retains nothing warns of the question
                grad = tensor.grad
            first(name, None, grad)
    finally:
        kept.clear()  # graph, module and hook would hold each other through what the collector cannot see


def _on_leaf(hook: HookKind, name: str, record: Record) -> Callable[[Any], Any]:
    if hook.call == POST_ACCUMULATE:
        return lambda leaf: record(name, None, leaf.grad)
    return partial(record, name, None)


def _watch(hook: HookKind, path: str, record: Record, kept: list[tuple[str, Any]], _: Any, args: Any, out: Any) -> None:
    """A forward hook that puts a hook on each output, or on the Node that made it."""
    for position, tensor in enumerate(out if isinstance(out, tuple) else (out,)):
        name = f"{path}[{position}]"
        if not isinstance(tensor, torch.Tensor) or not tensor.requires_grad:
            continue
        if hook.call == OUTPUT:
            tensor.register_hook(partial(record, name, None))  # type: ignore[no-untyped-call]
        elif tensor.grad_fn is not None and hook.scope == "node":
            # A Node hook is called with the gradients of the Node's inputs and outputs, a pre-hook with the latter.
            place = tensor.output_nr
            getattr(tensor.grad_fn, hook.register)(lambda *told, n=name, i=place: record(n, None, told[-1][i]))
        elif tensor.grad_fn is not None:
            tensor.retain_grad()
            kept.append((name, tensor))


def _saving(hook: HookKind, record: Record) -> Any:
    """What is saved is numbered, kept, and given back as it was."""
    saved: list[Any] = []

    def pack(tensor: Any) -> int:
        record("pack", None, len(saved))
        # Without its grad_fn, since what a Node saves of its own outputs would keep the Node alive.
        saved.append(tensor.detach())
        return len(saved) - 1

    def unpack(number: int) -> Any:
        record("unpack", None, number)
        return saved[number]

    return getattr(torch.autograd.graph, hook.register)(pack, unpack)


def acted(hook: HookKind, link: int, *arguments: Any) -> Any:
    """What a hook that acts returns, given what it is called with, the module aside; see `hookcheck.oracle.acts`."""
    acts = hook.acts
    if acts.backward:
        return tuple(_scaled(g, share(acts, link, i)) for i, g in enumerate(arguments[0]))
    by = share(acts, link, 0)
    if acts.args:
        first, rest = arguments[0][:1], arguments[0][1:]
        return (*(_scaled(value, by) for value in first), *rest)
    output = arguments[-1]
    if isinstance(output, tuple) and not hasattr(output, "_fields"):
        return tuple(_scaled(value, by) for value in output)
    return _scaled(output, by) if isinstance(output, torch.Tensor) else None


def _scaled(value: Any, by: float) -> Any:
    """A floating tensor scaled; zeros for an argument of integers, and all else, as they are."""
    floating = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
    return by * value if floating else value
