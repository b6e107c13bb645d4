"""What does a forward pass leave behind? Tensors, the nodes that made them, calls of modules, and backward passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Union

from hookcheck.hooks.acts import NO_ACTS, Acts
from hookcheck.oracle.rounding import Noise
from hookcheck.topology.model import Module
from hookcheck.topology.primitive import Array, Primitive, Shape


class Tensor:
    """One version of a tensor of the forward pass; writing in place makes a new one.

    ``node`` made it as its output ``slot``; a leaf has a ``name`` instead. ``newer`` is the version that took its
    place. ``base`` is the tensor whose memory it shares and ``positions`` are where in it (flat indices, of this
    tensor's shape); ``views`` are those that share its own. ``bound`` is what came out of a boundary, where it is that
    or a view of it; ``stale`` says that its memory was written to since, so that autograd refuses to go on with it,
    ``wraps`` that it is of a class which wraps what functions make of it, and ``contiguous`` that it is known to lie in
    memory so. ``unfollowed`` counts the writes to it that its history knows nothing of.
    """

    __slots__ = (
        "array", "base", "bound", "contiguous", "dtype", "name", "newer", "node", "positions", "requires_grad", "slot",
        "stale", "unfollowed", "views", "wraps",
    )  # fmt: skip

    def __init__(
        self, array: Array, requires_grad: bool, dtype: str, node: Node | None = None, slot: int = 0, name: str = ""
    ) -> None:
        """``dtype`` by its name in torch; ``array`` is float64 (complex128) for every floating (complex) one."""
        self.array = array
        self.requires_grad = requires_grad
        self.dtype = dtype
        self.node = node
        self.slot = slot
        self.name = name
        self.newer: Tensor | None = None
        self.base: Tensor | None = None
        self.positions: Array | None = None
        self.views: list[Tensor] = []
        self.bound: Tensor | None = None
        self.stale = False
        self.wraps = False
        self.contiguous = False
        self.unfollowed = 0


@dataclass(eq=False)
class Node:
    """A step of the graph.

    ``primitive`` is None for a boundary: ``positions`` are those of its tensors among the arguments or outputs of the
    call, and ``exit``, on inputs only, is the index of the boundary around the outputs (-1: there is none).
    ``parameters`` names the last of the ``inputs``, and ``buffers`` are what the step found in those; ``shapes`` are
    those of the outputs (which hold the node, so the node must not hold them: a cycle would wait for the garbage
    collector). ``opaque`` says that only torch knows the Nodes which it makes there (see `Primitive.opaque`). ``last``
    is what the latest sweep received and passed on: the next one mostly meets the same.
    """

    index: int
    primitive: Primitive | None
    inputs: tuple[Tensor, ...]
    shapes: tuple[Shape, ...]
    parameters: tuple[str, ...] = ()
    buffers: Mapping[str, Array] = field(default_factory=dict)
    positions: tuple[int, ...] = ()
    exit: int | None = None
    opaque: bool = False
    last: tuple[tuple[Array | None, ...], tuple[Array | None, ...]] | None = None


@dataclass(eq=False)
class CallTrace:
    """One call of a module.

    ``path`` is dotted below the root (empty for the root), ``number`` counts the calls of that module from 0. ``args``
    and ``outputs`` hold, position by position, the tensor *outside* of the call's boundary, or None where there is no
    tensor; ``outputs_inside`` holds those inside of it, and ``first`` the first tensor among these, in containers too.
    ``after`` is how many backward passes came before it. ``given`` and ``keywords`` are the arguments as pre-hooks
    are told of them, in their containers, ``left`` both as the call leaves them, which may have written to them, and
    ``result`` is what it gives. ``entry`` and ``exit`` are the boundary nodes, None where nothing requires grad or
    grad mode is off. ``steps`` are the nodes that the call has put into the graph.
    """

    path: str
    number: int
    module: Module
    mode: str
    after: int = 0
    given: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)
    left: tuple[Any, Any] = ((), {})
    result: Any = None
    args: tuple[Tensor | None, ...] = ()
    outputs_inside: tuple[Tensor | None, ...] = ()
    outputs: tuple[Tensor | None, ...] = ()
    first: Tensor | None = None
    container: str = ""
    entry: Node | None = None
    exit: Node | None = None
    steps: list[Node] = field(default_factory=list)

    @property
    def subject(self) -> str:
        """How people are told of the call: ``net.block.fc#0``."""
        return f"{'.'.join(['net', self.path] if self.path else ['net'])}#{self.number}"


Key = Union[str, "tuple[int, int]"]
"""A gradient that is asked for: a leaf by name, or an intermediate by its node's index and its slot."""


@dataclass(frozen=True)
class Pass:
    """One backward: its roots with a cotangent each, and the gradients asked for (None for those of all leaves).

    ``accumulates`` is False for ``torch.autograd.grad``, which leaves ``.grad`` alone. ``second`` says that the pass
    goes through a backward before it, so that its numbers rest on central differences, and ``named`` that the program
    has a name for what it gives. ``nodes`` is how many the graph had by then.
    """

    roots: tuple[Tensor, ...]
    cotangents: tuple[Array, ...]
    wanted: frozenset[Key] | None
    accumulates: bool = True
    second: bool = False
    named: bool = False
    nodes: int = 0


@dataclass
class Trace:
    """The whole forward pass: nodes in order of creation, calls in order of entry and, in ``ended``, of their end,
    backward passes, and leaves; ``acts`` is what hooks changed in it.

    ``allowed`` is how many of the passes come before the first statement that writes to a module's input or output in
    place, which a full backward hook forbids; None if there is no such statement. ``noise`` falls on every step.
    ``doubled`` says that a backward has left a graph of its own, ``recorded`` that any was told to leave one.
    ``repeats`` are the parts that a backward runs again, as far as it needs them (checkpoints): of each the calls in
    it, in order of entry, and of their end.
    """

    nodes: list[Node]
    calls: list[CallTrace]
    passes: list[Pass]
    leaves: dict[str, Tensor]
    names: Mapping[str, Any]
    dtypes: set[str]
    noise: Noise | None = None
    allowed: int | None = None
    doubled: bool = False
    recorded: bool = False
    repeats: list[tuple[list[CallTrace], list[CallTrace]]] = field(default_factory=list)
    acts: Acts = NO_ACTS
    ended: list[CallTrace] = field(default_factory=list)


def newest(value: Any) -> Any:
    """``value`` with the newest version of every tensor in it."""
    while isinstance(value, Tensor) and value.newer is not None:
        value = value.newer
    if isinstance(value, SimpleNamespace):
        return SimpleNamespace(**{key: newest(item) for key, item in vars(value).items()})
    if isinstance(value, dict):
        return {key: newest(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        items = [newest(item) for item in value]
        named: Any = type(value)
        return named(*items) if hasattr(value, "_fields") else named(items)
    return value


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors in a value, in order; those in a dataclass are out of sight, as they are to torch."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(item)


def origin(tensor: Tensor) -> Tensor:
    """``tensor`` as the step that made it gave it: boundaries aside."""
    while tensor.node is not None and tensor.node.primitive is None:
        tensor = tensor.node.inputs[tensor.slot]
    return tensor
