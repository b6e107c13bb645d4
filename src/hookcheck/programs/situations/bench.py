"""A net, its hooks and their log, in words of torch alone: what the lines of a situation run on."""

from __future__ import annotations

import copy  # noqa: F401 -- these three are for the lines that follow
import gc
import pickle  # noqa: F401
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module  # noqa: F401
from typing import Any

import torch
from torch import nn

LOG: list[Any] = []
HANDLES: dict[str, Any] = {}
ONCE: dict[str, Callable[[], object]] = {}
LANES: dict[str, str] = {}
REFERENCES: dict[str, Any] = {}
NODES: list[Any] = []
"""What hooks noted; their handles; what each does when it is called next; what orders it; whether it is alive."""


WRITTEN_TO = ("modified by an inplace operation", "has been modified inplace")
"""What torch says of a tensor that a backward needs, once it was written to."""


class Stop(Exception):
    """What a hook, a body or a closure raises."""


class Interrupt(KeyboardInterrupt):
    """The same, as Ctrl-C does it."""


def called(name: str, shows: str, *given: Any) -> Any:
    """A hook of any kind, once it has its ``name`` and what it ``shows`` of its arguments."""
    if given and isinstance(given[0], nn.Module) and "label" not in vars(given[0]):
        return None  # a module of the host's own, met by a hook on all modules
    entry = (name, *shown(shows, given))
    if shows != "once" or entry not in LOG:
        LOG.append(entry)
    ONCE.pop(name, bool)()
    return given[0] if shows == "once" else None  # what is saved must be given back


def shown(shows: str, given: Any) -> Any:
    """Which arguments are noted: their ``values``, ``owners``, ``names``, a leaf's ``grad``, the ``last``."""
    if shows == "values":
        return tuple(map(plain, given))
    if shows == "grad":
        return (plain(given[0].grad),)
    if shows == "last":
        return (plain(given[-1]),)
    if shows in ("owners", "names"):
        words = (nn.Module, torch.optim.Optimizer) if shows == "owners" else (nn.Module, str)
        return tuple(plain(value) for value in given[:2] if isinstance(value, words))
    return ()


def plain(value: Any) -> Any:
    """Tensors as the sums of their numbers, modules by their labels."""
    if isinstance(value, torch.Tensor):
        return float(value.detach().sum())
    if isinstance(value, nn.Module):
        return vars(value).get("label", type(value).__name__)
    if isinstance(value, torch.optim.Optimizer):
        return "optimizer"
    return type(value)(map(plain, value)) if type(value) in (tuple, list) else value


def hook(name: str, shows: str, lane: str) -> Any:
    """The hook of that name; hooks of one ``lane`` are called in an order that is promised."""
    function = partial(called, name, shows)
    LANES[name], REFERENCES[name] = lane, weakref.ref(function)
    return function


def attempt(act: Callable[[], Any]) -> Any:
    """What ``act`` gives; where it raises, that is noted."""
    try:
        return act()
    except (Exception, Interrupt) as error:
        lines = str(error).strip().splitlines()
        expected = isinstance(error, (Stop, Interrupt)) or any(text in str(error) for text in WRITTEN_TO)
        LOG.append(("raised", type(error).__name__, *([] if expected else lines[:1])))


def raising(error: type[BaseException]) -> Callable[..., Any]:
    """A function that raises."""

    def act(*_: Any) -> Any:
        raise error

    return act


def noted() -> list[Any]:
    """What was noted since, by lane; once something was raised, in the last lane alone, since others may be cut off."""
    raised = any(entry[0] == "raised" for entry in LOG)
    lanes = [LANES[entry[0]] for entry in LOG if entry[0] in LANES] if raised else []
    entries = [entry for entry in LOG if not lanes or LANES.get(entry[0], lanes[-1]) == lanes[-1]]
    LOG.clear()
    return sorted(entries, key=order)


def order(entry: Any) -> tuple[str, str]:
    """By what entries are ordered that no promise orders: lanes, and in that of legacy hooks the modules."""
    lane = LANES.get(entry[0], "")
    return lane, entry[1] if lane == "legacy" else ""


def alive() -> list[str]:
    """The hooks that something still holds."""
    gc.collect()
    return sorted(name for name, reference in REFERENCES.items() if reference() is not None)


def network() -> Any:
    """Two modules, one after the other, that multiply by 2 and by 3."""
    parts = [nn.Linear(1, 1, bias=False) for _ in range(2)]
    for part, factor in zip(parts, (2.0, 3.0)):
        nn.init.constant_(part.weight, factor)
    return nn.Sequential(*parts)


def part(net: Any, index: int) -> Any:
    """A part of a net, or of what the net is wrapped around."""
    return vars(vars(net)["_modules"].get("module", net))["_modules"][str(index)]


def leaf(net: Any) -> Any:
    """The parameter of the first part."""
    return next(part(net, 0).parameters())


def labelled(net: Any) -> Any:
    """The net, once it and its parts have their labels."""
    for module, label in ((net, "net"), (part(net, 0), "net[0]"), (part(net, 1), "net[1]")):
        vars(module)["label"] = label
    return net


def accumulator(tensor: Any) -> Any:
    """The Node that accumulates the gradient of a leaf, held from now on."""
    with torch.enable_grad():  # a hook may ask, too
        NODES.append(tensor.view_as(tensor).grad_fn.next_functions[0][0])
    return NODES[-1]


class Entered:
    """Hooks on what is saved while a context is open, which `remove` closes."""

    def __init__(self, pack: Any, unpack: Any) -> None:
        """Opens it."""
        self.stack = ExitStack()
        self.stack.enter_context(torch.autograd.graph.saved_tensors_hooks(pack, unpack))

    def remove(self) -> None:
        """Closes it, once."""
        self.stack.close()

    def __enter__(self) -> None:
        """As a handle."""

    def __exit__(self, *_: Any) -> None:
        """As a handle."""
        self.remove()


def same(value: Any) -> Any:
    """What hooks on saved tensors do that change nothing."""
    return value


def closure() -> float:
    """What a step calls."""
    LOG.append(("closure",))
    ONCE.pop("closure", bool)()
    return 0.0


def attach(net: Any) -> None:
    """Registers a buffer, a parameter and a module, and takes them away again."""
    try:
        net.register_buffer("extra_buffer", torch.zeros(1))
        net.register_parameter("extra_parameter", nn.Parameter(torch.zeros(1)))
        net.add_module("extra_module", nn.Identity())
    finally:
        for table, name in (("_buffers", "buffer"), ("_parameters", "parameter"), ("_modules", "module")):
            vars(net)[table].pop(f"extra_{name}", None)


@contextmanager
def failing(module: Any, error: type[BaseException]) -> Iterator[None]:
    """While it is open, the body of ``module`` raises ``error``."""
    vars(module)["forward"] = raising(error)
    try:
        yield
    finally:
        del vars(module)["forward"]


@contextmanager
def beginning(module: Any, act: Callable[[], object]) -> Iterator[None]:
    """While it is open, the body of ``module`` begins with ``act``."""
    body = module.forward

    def forward(x: Any) -> Any:
        act()
        return body(x)

    vars(module)["forward"] = forward
    try:
        yield
    finally:
        del vars(module)["forward"]


def in_thread(act: Callable[[], Any]) -> Any:
    """What ``act`` gives in a thread of its own."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(act).result()


def checkpointed(net: Any, x: Any) -> Any:
    """What a net gives in a checkpoint, by which all of it is called again on the way back."""
    from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

    with set_checkpoint_early_stop(False):
        return checkpoint(net, x, use_reentrant=False)


def clear(net: Any, x: Any) -> None:
    """Takes all gradients away."""
    for tensor in (x, *net.parameters()):
        tensor.grad = None


def values(net: Any) -> dict[str, Any]:
    """The state of a net, without asking it, which would call hooks."""
    return {name: value.detach().clone() for name, value in (*net.named_parameters(), *net.named_buffers())}


def restored(host: Any) -> Any:
    """A net of that class."""
    return host(*network())


def changed(net: Any, change: Callable[[Any], Any]) -> Any:
    """The net, once ``change`` was done to its first part."""
    change(net[0])
    return net
