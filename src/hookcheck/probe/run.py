"""How is a topology run once, with one kind of hook on every module, and every event recorded?"""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from threading import get_ident
from typing import Any

import torch

from hookcheck.errors import HookcheckError, is_the_machines
from hookcheck.hooks.kinds import KINDS, OUTPUT
from hookcheck.probe.compiling import compiles, compiling, marking, said_once, supported
from hookcheck.probe.copying import array_of, copied, fields_of, is_container, layouts, standings
from hookcheck.probe.cuda import BROUGHT, current_stream, ordered_on, random_state, seed, settle
from hookcheck.probe.observation import Array, Event, Observation, Raised
from hookcheck.probe.registering import owner, registered
from hookcheck.probe.state import preserved
from hookcheck.releases.numbers import release
from hookcheck.topology.build import build
from hookcheck.topology.model import Topology
from hookcheck.topology.needs import needs

IMPORTED_LATE = "torch.fx.experimental.symbolic_shapes"
"""What torch since 2.1 imports at its first backward, sympy with it: that takes longer than all else at a start."""

References = Mapping[str, "weakref.ref[Any]"]


def observe(
    topology: Topology,
    numbers: Mapping[str, Array],
    kind: str | None,
    device: str = "cpu",
    within: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Observation:
    """Builds ``topology`` on ``device`` and runs it once, with a hook of ``kind`` on all that the kind is about.

    ``numbers`` are the values of parameters and inputs (see `hookcheck.topology.values.values`). With ``kind`` None no
    hook is registered, and the run is ``within`` such a context. Hooks record what they are given; those that act
    return it scaled. An exception of the run is part of the observation; the process is left as it was found either
    way, save that the collector does not look again through what it has found to be alive (``gc.unfreeze`` has it do
    so). Only ``Exception`` is caught: Ctrl-C ends the run at once.
    """
    seen, references = _observed(topology, numbers, kind, device, within)
    # After an exception frames hold each other and all that is in them.
    if seen.raised or not _alive(references):
        return seen
    settle()
    gc.collect()  # what holds itself in a cycle is not kept for that
    gc.freeze()  # what is left was there before, and need not be looked through again
    return replace(seen, alive=_alive(references))


def _worded(warning: warnings.WarningMessage) -> tuple[str, str]:
    """Its category and first line."""
    return warning.category.__name__, str(warning.message).partition("\n")[0]


def _is_torchs_own(name: str) -> bool:
    """Whether torch.compile has put the name there, which it deletes itself, or Python has."""
    return name.startswith("__")


def _is_of_others(text: str) -> bool:
    """Whether no hook has to do with a warning: the device brings it, or dynamo, which says it once in a process, so
    that it comes in whichever run is the first to meet what it is about."""
    return any(part in text for part in BROUGHT) or text in said_once()


def _alive(references: References) -> tuple[str, ...]:
    return tuple(name for name, reference in references.items() if reference() is not None)


def _observed(
    topology: Topology,
    numbers: Mapping[str, Array],
    kind: str | None,
    device: str,
    within: Callable[[], AbstractContextManager[Any]],
) -> tuple[Observation, References]:
    """What a run shows, and references to all of it that must be freed when this returns."""
    chained: list[tuple[int, Event]] = []
    raised = None
    with preserved(), compiling(topology), ordered_on(device), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # torch.manual_seed would seed every device, and format the stack for those that have not been used yet.
        torch.default_generator.manual_seed(0)
        seed(device)
        built = build(topology, numbers, device)
        known = built.known()
        names: dict[str, Any] = {}
        stream = current_stream(device)
        try:
            with (
                within()
                if kind is None
                else registered(KINDS[kind], built, chained, marked=marking(topology), stream=stream)
            ):
                names = built.run()
        except Exception as error:
            if is_the_machines(error):
                raise
            raised = Raised(type(error).__name__, str(error))
        named = {
            name: value
            for name, value in names.items()
            if name not in known
            and not _is_torchs_own(name)
            and (isinstance(value, torch.Tensor) or is_container(value))
        }
        tensors = dict(_tensors(named))
        leaves = {**built.parameters, **built.inputs}
        # A program calls parameters by where they are.
        standing = {
            **{f"net.{name}": parameter for name, parameter in built.parameters.items()},
            **built.inputs,
            **tensors,
        }
        gradients = {name: leaf.grad for name, leaf in leaves.items() if leaf.is_leaf}
        observation = Observation(
            events=tuple(event for link, event in chained if not link),
            values={name: copied(value) for name, value in named.items()},
            requires_grad={name: tensor.requires_grad for name, tensor in tensors.items()},
            gradients={n: None if gradient is None else array_of(gradient) for n, gradient in gradients.items()},
            warnings=tuple(_worded(w) for w in caught if not _is_of_others(str(w.message))),
            raised=raised,
            random=random_state(device),
            chained=tuple(chained) if kind is not None and KINDS[kind].then else (),
            standings=standings(standing),
            layouts=layouts(gradients),
            thread=get_ident(),
            stream=stream(),
        )
        objects = {**{f"net.{path}" if path else "net": module for path, module in built.modules.items()}, **standing}
        # What generated classes hold on to in cycles would wait for the garbage collector.
        for name in [name for name in names if not _is_torchs_own(name)]:
            del names[name]
        return observation, {name: weakref.ref(thing) for name, thing in objects.items()}


def unavailable(topology: Topology, kind: str | None) -> str:
    """Why this torch cannot run ``topology`` with hooks of ``kind``, or an empty text where it can."""
    since, thing = needs(topology)
    if release(since) > release(torch.__version__):
        return f"{thing} came with torch {since}"
    if compiles(topology) and not supported():
        return "this torch does not compile on this Python"
    return "" if kind is None else lacking(kind)


def lacking(kind: str) -> str:
    """Why this torch has no hooks of ``kind``, or an empty text where it has."""
    hook = KINDS[kind]
    if release(hook.since) > release(torch.__version__):
        return f"{hook.register} came with torch {hook.since}"
    return "" if hasattr(owner(hook), hook.register) else f"this torch has no {hook.register}"


def unsafe(kind: str, writes: bool) -> str:
    """Why hooks of ``kind`` can end the process on this torch, on networks that write in place; or an empty text.

    A hook that is registered on a view after a write to what it is a view of crashed up to 2.14.
    """
    crashes = (2, 0) <= release(torch.__version__) < (2, 15)
    if KINDS[kind].call == OUTPUT and writes and crashes:
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


def _tensors(value: Any, name: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor in ``value``, by where it is: ``y``, ``y[0]``, ``leaked[h]``."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif is_container(value):
        for key, item in fields_of(value):
            yield from _tensors(item, f"{name}[{key}]" if name else str(key))
