"""The hooks of a kind on all that the kind is about. They record what they are given, and those that act change it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from threading import get_ident
from typing import Any, Optional, Protocol

import torch

from hookcheck.hooks.acts import share
from hookcheck.hooks.kinds import FORWARD, NODE, NODE_PRE, OUTPUT, POST_ACCUMULATE, RETAINED, SAVED, HookKind
from hookcheck.probe.compiling import Mark, unmarked
from hookcheck.probe.copying import asks, copied, devices, tensors_among
from hookcheck.probe.cuda import no_stream
from hookcheck.probe.observation import Copy, Event


class HookTargets(Protocol):
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
"""Takes which hook of a chain was called, the path under which its calls go (None for a global hook), the module or
other object that it was given, and the other arguments; gives what the hook returns."""

Hooks = Callable[[int, Optional[str], Any], Any]
"""Gives the function to register: for which hook of a chain, counted from 0 in the order in which they are due, the
path or name of what it is on (None for a global hook; ``pack`` and ``unpack`` for what is saved), and that object."""

PREPEND = hasattr(torch.nn.Module, "register_full_backward_pre_hook")
ALWAYS_CALL = hasattr(torch.nn.modules.module, "_global_forward_hooks_always_called")
"""Whether this torch can put a hook before others, and call a forward hook after an exception."""


def evaluated(expression: str, **names: Any) -> Any:
    """What an expression of a declaration in `hookcheck.hooks` gives."""
    return eval(_compiled(expression), {"torch": torch, "nn": torch.nn, **names})


@cache
def _compiled(expression: str) -> Any:
    return compile(expression, f"<{expression}>", "eval")


@cache
def owner(hook: HookKind) -> Any:
    """What the function that registers hooks of the kind is an attribute of; None where this torch has none."""
    return evaluated(hook.owner)


GRAPH_TASK: Callable[[], int] | None = getattr(torch._C, "_current_graph_task_id", None)
"""Which backward is running in this thread, -1 for none; torch before 2.0 does not tell."""


def in_backward() -> bool:
    """Whether a backward is running in this thread, if this torch tells."""
    return GRAPH_TASK is not None and GRAPH_TASK() != -1


@contextmanager
def registered(
    hook: HookKind,
    built: HookTargets,
    chained: list[tuple[int, Event]],
    keep: Callable[[Any], Copy] = copied,
    marked: Mark = unmarked,
    stream: Callable[[], int] = no_stream,
) -> Iterator[None]:
    """While it is open, hooks of a kind are there; every call of one is appended to ``chained``.

    With each event stands which hook of a chain was called, counted from 0 in the order in which they are due.
    ``keep`` is what stays of each argument; ``marked`` gives what is registered in the place of a hook; ``stream`` says
    which one is current.
    """
    # A replica has the tables of what it was made from.
    paths = {id(module._forward_hooks): path for path, module in built.modules.items()}
    counts: dict[tuple[int, str], int] = {}
    retained: list[tuple[str, Any]] = []
    saved: list[Any] = []
    acting = acted(hook)

    def record(link: int, registered: str | None, target: Any, *arguments: Any) -> Any:
        given = paths.get(id(getattr(target, "_forward_hooks", None)))
        path = registered if registered is not None else given or ""
        # Tensors are copied at once, since torch may go on to change or free them.
        number, tensors = counts.get((link, path), 0), tensors_among(arguments)
        event = Event(
            hook.name,
            path,
            number,
            given,
            tuple(map(keep, arguments)),
            asks(tensors),
            in_backward(),
            devices(tensors),
            get_ident(),
            stream(),
        )
        chained.append((link, event))
        counts[link, path] = number + 1
        return acting(_scaled, partial(share, hook.acts, link), *arguments) if acting else None

    def recording(link: int, path: str | None, target: Any) -> Any:
        if hook.call == RETAINED:
            retained.append((path or "", target))
            return None
        if hook.call == SAVED:
            return partial({"pack": _pack, "unpack": _unpack}[path or ""], partial(record, link, path, None), saved)
        return _recording(hook, partial(record, link, path), target)

    with put(hook, built, recording, marked):
        try:
            yield
            for name, tensor in retained:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a torch that retains nothing warns of the question
                    grad = tensor.grad
                record(0, name, None, grad)
        finally:
            retained.clear()  # graph, module and hook would hold each other through what the collector cannot see


def _recording(hook: HookKind, record: Record, target: Any) -> Any:
    """A hook that records its calls, put on ``target``."""
    if hook.scope in ("module", "global"):
        return record
    if hook.call == POST_ACCUMULATE:
        return lambda leaf: record(None, leaf.grad)
    if hook.scope == "leaves":
        return lambda gradients: record(None, dict(zip(target, gradients)))
    if hook.call in (NODE, NODE_PRE):
        # A Node hook is called with the gradients of the Node's inputs and outputs, a pre-hook with the latter.
        place = target.output_nr
        return lambda *gradients: record(None, gradients[-1][place])
    return partial(record, None)


def _pack(record: Record, saved: list[Any], tensor: Any) -> int:
    """What is saved is numbered, kept, and given back as it was."""
    record(len(saved))
    # Without its grad_fn, since what a Node saves of its own outputs would keep the Node alive.
    saved.append(tensor.detach())
    return len(saved) - 1


def _unpack(record: Record, saved: list[Any], number: int) -> Any:
    record(number)
    return saved[number]


@contextmanager
def put(hook: HookKind, built: HookTargets, given: Hooks, marked: Mark = unmarked) -> Iterator[None]:
    """While it is open, hooks of a kind are on all that the kind is about, put there as `hookcheck.hooks` says."""

    def hooks(link: int, path: str | None, target: Any) -> Any:
        return marked(given(link, path, target))

    expression, modules = hook.registering, built.modules
    leaves = {name: leaf for named in (built.parameters, built.inputs) for name, leaf in named.items()}
    wanting = {name: leaf for name, leaf in leaves.items() if leaf.requires_grad}
    if hook.scope == "run":
        with evaluated(expression, pack=hooks(0, "pack", None), unpack=hooks(0, "unpack", None)):
            yield
        return
    if hook.scope == "leaves":
        # Its handle is a context that removes it: torch would else free neither the hook nor the leaves.
        with evaluated(expression, leaves=[*wanting.values()], hook=hooks(0, "", [*wanting])):
            yield
        return
    if hook.scope == "global":
        evaluated(expression, hook=hooks(0, None, None))
    elif hook.scope == "module":
        for path, module in modules.items():
            evaluated(expression, module=module, hook=hooks(0, path, module))
    elif hook.scope == "leaf":
        for name, leaf in wanting.items():
            evaluated(expression, leaf=leaf, hook=hooks(0, name, leaf))
    else:
        for path, module in modules.items():
            module.register_forward_hook(marked(partial(_watch, hook, path, hooks)))
    for path, module in modules.items() if hook.then else ():
        # The hook that is registered first is called last where the other one can be put before it.
        last, middle = (2, 1) if PREPEND else (1, 2)
        settings = {"prepend": True} if PREPEND else {}
        if ALWAYS_CALL and hook.call == FORWARD:
            settings["always_call"] = True
        getattr(module, hook.then)(hooks(last, path, module))
        getattr(module, hook.then)(hooks(middle, path, module), **settings)
    yield


def _watch(hook: HookKind, path: str, hooks: Hooks, _: Any, args: Any, output: Any) -> None:
    """A forward hook that puts a hook on each output, or on the Node that made it."""
    for position, tensor in enumerate(output if isinstance(output, tuple) else (output,)):
        if not isinstance(tensor, torch.Tensor) or not tensor.requires_grad:
            continue
        if tensor.grad_fn is not None or hook.call == OUTPUT:  # a leaf has no Node, and retains its gradient as it is
            given = hooks(0, f"{path}[{position}]", tensor)
            evaluated(hook.registering, tensor=tensor, node=tensor.grad_fn, hook=given)


@cache
def acted(hook: HookKind) -> Callable[..., Any] | None:
    """What gives that which a hook that acts returns: a function of how it scales, of its shares, and of what it is
    called with, the module aside; None for one that looks on. See `hookcheck.hooks.acts`."""
    if hook.observes:
        return None
    answer = hook.acts.returned("share(i)" if hook.acts.backward else "share(0)")
    function: Callable[..., Any] = evaluated(f"lambda scaled, share, {', '.join(hook.parameters[1:])}: {answer}")
    return function


def _scaled(value: Any, by: float) -> Any:
    """A floating tensor scaled; zeros for an argument of integers, and all else, as they are."""
    floating = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
    return by * value if floating else value
