"""What happened? Everything that one run of torch showed, as plain data that outlives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, Union

import numpy as np

Array = np.ndarray[Any, Any]
_BITS = np.dtype(np.uint16)
Copy = Union[Array, None, str, "tuple[Any, ...]", "list[Any]", "dict[str, Any]"]
"""A copied value: an array for a tensor (see `numbers`), containers of copies, None, the ``repr`` of all else."""


def dtype_of(array: Array) -> str:
    """The name of the dtype that the copied tensor had in torch."""
    return _name(array.dtype)


@lru_cache(maxsize=64)
def _name(dtype: np.dtype[Any]) -> str:
    return "bfloat16" if dtype == _BITS else dtype.name


def numbers(array: Array) -> Array:
    """The numbers of a copied tensor; those of bfloat16 are kept as their 16 bits, the upper half of a float32."""
    if array.dtype != _BITS:
        return array
    bits = np.asarray(np.left_shift(array.astype(np.uint32), np.uint32(16)))  # of one alone NumPy makes a scalar
    return bits.view(np.float32)


class Event(NamedTuple):
    """One call of a hook.

    ``path`` is the dotted path of the module on which the hook was registered (for a global hook: of the module that it
    was given), ``number`` counts the events of that path from 0, ``given`` is the path of the module that was passed
    (None for an object that is no module of the network), and ``arguments`` are copies of the other arguments;
    ``requires_grad`` says whether any tensor among them, or in a tuple of them, does. ``again`` says that it
    came in a backward, which torch tells since 2.0. ``devices`` are the kinds of device that those tensors lie on (a
    copy keeps their dtype); ``thread`` is the one that it came in, as `threading.get_ident` has it, and ``stream`` what
    CUDA calls the stream that was the current one, 0 on a CPU.
    """

    kind: str
    path: str
    number: int
    given: str | None
    arguments: tuple[Copy, ...]
    requires_grad: bool = False
    again: bool = False
    devices: tuple[str, ...] = ()
    thread: int = 0
    stream: int = 0

    def __eq__(self, other: object) -> bool:
        """Only with itself: arrays do not compare as wholes."""
        return self is other

    def __hash__(self) -> int:
        """By identity, as it is compared."""
        return id(self)


class Standing(NamedTuple):
    """What a tensor is beside its numbers.

    ``object`` is the first name of the very same object: a parameter's (``net.weight``), an input's, that of a value
    before it, or its own. ``version`` is None where torch counts none, for a tensor made in inference mode, and there
    are no ``strides`` where the layout has none. ``kind`` is its class and its layout.
    """

    object: str
    view: bool
    leaf: bool
    version: int | None
    strides: tuple[int, ...]
    kind: str = "Tensor, torch.strided"


class Layout(NamedTuple):
    """What a ``.grad`` is beside its numbers: ``kind`` as in `Standing`."""

    strides: tuple[int, ...]
    requires_grad: bool
    kind: str = "Tensor, torch.strided"


@dataclass(frozen=True)
class Raised:
    """The exception that ended a run: its class and its text."""

    type: str
    text: str

    def __str__(self) -> str:
        """``RuntimeError: the first line of the text``."""
        return f"{self.type}: {self.text.splitlines()[0] if self.text else ''}"


@dataclass(frozen=True, eq=False)
class Observation:
    """All that one run showed.

    ``events`` in the order in which they happened; ``values`` are the values that main named, its inputs left out;
    ``requires_grad`` says it of those of them that are tensors; ``gradients`` is ``.grad`` of every leaf by name, None
    where there is none; ``warnings`` are (category, first line) pairs; ``raised`` is the exception that ended the run
    early; ``random`` is the CPU's random state at the end (every run begins with the same one). ``standings`` are those
    of parameters, of inputs and of the tensors among ``values``, and ``layouts`` those of every ``.grad`` that there
    is. Of hooks that form a chain, ``events`` holds those of the first one, and ``chained`` those of all, each with its
    place in it. ``alive`` are the modules (the net is ``net``), parameters, inputs and values that were not freed after
    the run, if it did not raise. ``thread`` and ``stream`` are those that forward and backward were called in.
    """

    events: tuple[Event, ...]
    values: dict[str, Copy]
    requires_grad: Mapping[str, bool]
    gradients: Mapping[str, Array | None]
    warnings: tuple[tuple[str, str], ...]
    raised: Raised | None
    random: bytes = b""
    standings: Mapping[str, Standing] = field(default_factory=dict)
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    chained: tuple[tuple[int, Event], ...] = ()
    alive: tuple[str, ...] = ()
    thread: int = 0
    stream: int = 0


def same(a: Copy, b: Copy) -> bool:
    """Whether two copies agree bit by bit, dtypes and shapes included."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(item, b[key]) for key, item in a.items())
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def same_run(a: Observation, b: Observation) -> bool:
    """Whether two runs showed the same, the name of the hook kind aside."""
    return (
        a.raised == b.raised
        and a.warnings == b.warnings
        and a.random == b.random
        and a.requires_grad == b.requires_grad
        and a.standings == b.standings
        and a.layouts == b.layouts
        and _occasions(a) == _occasions(b)
        and all(same(one.arguments, other.arguments) for one, other in zip(a.events, b.events))
        and a.alive == b.alive
        and not a.chained
        and not b.chained
        and same(a.values, b.values)
        and same(dict(a.gradients), dict(b.gradients))
    )


def _occasions(run: Observation) -> list[tuple[object, ...]]:
    here = run.thread, run.stream
    return [(*e[1:4], e.requires_grad, e.devices, (e.thread, e.stream) == here) for e in run.events]
