"""How is a topology run once, with one kind of hook on every module, and every event recorded?"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from hookcheck.errors import HookcheckError
from hookcheck.oracle.acts import FORWARD, factor
from hookcheck.probe.kinds import KINDS, POST_ACCUMULATE, HookKind
from hookcheck.probe.observation import Array, Copy, Event, Observation, Raised
from hookcheck.probe.state import preserved
from hookcheck.topology.build import Built, build
from hookcheck.topology.model import Topology, needs


def observe(topology: Topology, numbers: Mapping[str, Array], kind: str | None, device: str = "cpu") -> Observation:
    """Builds ``topology`` on ``device`` and runs it once, with a hook of ``kind`` on all that the kind is about.

    ``numbers`` are the values of parameters and inputs (see `hookcheck.topology.values.values`). With ``kind`` None no
    hook is registered. Hooks record what they are given; those that act return it scaled. An exception of the run is
    part of the observation; the process is left as it was found either way. Only ``Exception`` is caught: Ctrl-C ends
    the run at once.
    """
    events: list[Event] = []
    raised = None
    with preserved(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # torch.manual_seed would seed every device, and format the stack for those that have not been used yet.
        torch.default_generator.manual_seed(0)
        built = build(topology, numbers, device)
        names: dict[str, Any] = {}
        try:
            if kind is not None:
                _register(KINDS[kind], built, events)
            names = built.run()
        except Exception as error:
            raised = Raised(type(error).__name__, str(error))
        named = {
            name: value
            for name, value in names.items()
            if (isinstance(value, torch.Tensor) or _is_container(value))
            and name not in built.inputs
            and name[:2] != "__"
        }
        observation = Observation(
            events=tuple(events),
            values={name: _copy(value) for name, value in named.items()},
            requires_grad=dict(_flags(named)),
            gradients={
                name: None if leaf.grad is None else _array(leaf.grad)
                for leaves in (built.parameters, built.inputs)
                for name, leaf in leaves.items()
                if leaf.is_leaf
            },
            warnings=tuple((w.category.__name__, str(w.message)) for w in caught),
            raised=raised,
            random=torch.default_generator.get_state().numpy().tobytes(),
        )
        # What generated classes hold on to in cycles would wait for the garbage collector.
        names.clear()
        return observation


def unavailable(topology: Topology, kind: str | None) -> str:
    """Why this torch cannot run ``topology`` with hooks of ``kind``, or an empty text where it can."""
    since, thing = needs(topology)
    if release(since) > release(torch.__version__):
        return f"{thing} came with torch {since}"
    return "" if kind is None else lacking(kind)


def lacking(kind: str) -> str:
    """Why this torch has no hooks of ``kind``, or an empty text where it has."""
    hook = KINDS[kind]
    owner = _OWNERS[hook.scope]
    if hasattr(owner, hook.register) and release(hook.since) <= release(torch.__version__):
        return ""
    return f"{hook.register} came with torch {hook.since}"


def unsafe(kind: str, writes: bool) -> str:
    """Why hooks of ``kind`` can end the process on this torch, on networks that write in place; or an empty text.

    A hook that is registered on a view after a write to what it is a view of crashed up to 2.14.
    """
    crashes = (2, 0) <= release(torch.__version__) < (2, 15)
    if KINDS[kind].scope == "output" and writes and crashes:
        return "registering a hook on a view that was written to can end the process (pytorch#196459)"
    return ""


def available_devices() -> tuple[str, ...]:
    """The devices of this machine that this torch can use: ``cpu`` and, where there is one, ``cuda``."""
    return ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)


def check_torch() -> None:
    """Makes sure that the installed torch is one that hooks can be probed on.

    Raises:
        HookcheckError: a torch without even the legacy hook, older than 1.7.
    """
    if not hasattr(torch.nn.Module, "register_backward_hook") or release(torch.__version__) < (1, 7):
        raise HookcheckError(f"torch {torch.__version__} is too old: install torch 1.7 or newer")


def release(version: str) -> tuple[int, int]:
    """Major and minor number of a version of torch."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


_OWNERS: dict[str, Any] = {
    "module": torch.nn.Module,
    "global": torch.nn.modules.module,
    "leaf": torch.Tensor,
    "output": torch.Tensor,
}
"""What the functions that register hooks are attributes of, by scope."""


def _register(hook: HookKind, built: Built, events: list[Event]) -> None:
    """Puts a recording hook on every module or leaf, or the one global hook."""
    modules = dict(built.module.named_modules())
    paths = {id(module): path for path, module in modules.items()}
    counts: Counter[str] = Counter()
    settings = {"with_kwargs": True} if hook.kwargs else {}

    def record(registered: str | None, subject: Any, *arguments: Any) -> Any:
        given = paths.get(id(subject))
        path = registered if registered is not None else given or ""
        # Tensors are copied at once, since torch may go on to change or free them.
        events.append(Event(hook.name, path, counts[path], given, tuple(map(_copy, arguments))))
        counts[path] += 1
        return None if hook.observes else acted(hook, *arguments)

    def watch(path: str, module: Any, args: Any, output: Any) -> None:
        for position, tensor in enumerate(output if isinstance(output, tuple) else (output,)):
            if isinstance(tensor, torch.Tensor) and tensor.requires_grad:
                tensor.register_hook(partial(record, f"{path}[{position}]", None))  # type: ignore[no-untyped-call]

    def accumulated(name: str, leaf: Any) -> None:
        record(name, None, leaf.grad)

    if hook.scope == "global":
        getattr(torch.nn.modules.module, hook.register)(partial(record, None))
    elif hook.scope == "module":
        for path, module in modules.items():
            getattr(module, hook.register)(partial(record, path), **settings)
    elif hook.scope == "output":
        for path, module in modules.items():
            module.register_forward_hook(partial(watch, path))
    else:
        for name, leaf in (*built.parameters.items(), *built.inputs.items()):
            if leaf.requires_grad:
                told = partial(accumulated, name) if hook.call == POST_ACCUMULATE else partial(record, name, None)
                getattr(leaf, hook.register)(told)


def acted(hook: HookKind, *arguments: Any) -> Any:
    """What a hook that acts returns, given what it is called with, the module aside; see `hookcheck.oracle.acts`."""
    if hook.acts.backward:
        return tuple(_scaled(g, factor(i)) for i, g in enumerate(arguments[0]))
    if hook.acts.args:
        first, rest = arguments[0][:1], arguments[0][1:]
        return (*(_scaled(value, FORWARD) for value in first), *rest)
    output = arguments[-1]
    if isinstance(output, tuple) and not hasattr(output, "_fields"):
        return tuple(_scaled(value, FORWARD) for value in output)
    return _scaled(output, FORWARD) if isinstance(output, torch.Tensor) else None


def _scaled(value: Any, by: float) -> Any:
    """A floating tensor scaled; zeros for an argument of integers, and all else, as they are."""
    floating = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
    return by * value if floating else value


def _copy(value: Any) -> Copy:
    if isinstance(value, torch.Tensor):
        return _array(value)
    if isinstance(value, dict):
        return {str(key): _copy(item) for key, item in value.items()}
    if type(value) in (tuple, list):
        copied: Copy = type(value)(map(_copy, value))
        return copied
    if _is_container(value):
        return {"type": type(value).__name__, **{name: _copy(item) for name, item in _fields(value)}}
    return None if value is None else repr(value)


def _is_container(value: Any) -> bool:
    """Whether it is a tuple, list, dict, namedtuple or an instance of a dataclass."""
    return isinstance(value, (tuple, list, dict)) or (is_dataclass(value) and not isinstance(value, type))


def _fields(value: Any) -> list[tuple[str, Any]]:
    """What a container holds, by key, by field, or by place."""
    if isinstance(value, dict):
        return list(value.items())
    if is_dataclass(value):
        return [(f.name, getattr(value, f.name)) for f in fields(value)]
    return [(str(i), item) for i, item in enumerate(value)]


def _array(tensor: torch.Tensor) -> Array:
    """The tensor's numbers in its own dtype, in memory of their own.

    NumPy has no bfloat16: the 16 bits are kept as they are.
    """
    plain = tensor.detach().cpu()
    if plain.dtype == torch.bfloat16:
        return plain.contiguous().view(torch.int16).numpy().view(np.uint16).copy()
    exact = plain.resolve_conj() if plain.is_complex() and hasattr(plain, "resolve_conj") else plain
    array: Array = exact.numpy().copy()
    return array


def _flags(value: Any, name: str = "") -> Iterator[tuple[str, bool]]:
    """``requires_grad`` of every tensor in ``value``, by where it is: ``y``, ``y[0]``, ``leaked[h]``."""
    if isinstance(value, torch.Tensor):
        yield name, value.requires_grad
    elif _is_container(value):
        for key, item in _fields(value):
            yield from _flags(item, f"{name}[{key}]" if name else str(key))
