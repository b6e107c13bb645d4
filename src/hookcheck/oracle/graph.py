"""What does a forward pass leave behind? Tensors, the nodes that made them, calls of modules, and backward passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Union

from hookcheck.oracle.rounding import Noise
from hookcheck.topology.model import Module
from hookcheck.topology.primitive import Array, Primitive, Shape


class Tensor:
    """One version of a tensor of the forward pass; writing in place makes a new one.

    ``node`` made it as its output ``slot``; a leaf has a ``name`` instead. ``newer`` is the version that took its
    place. ``base`` is the tensor whose memory it shares and ``positions`` are where in it (flat indices, of this
    tensor's shape); ``views`` are those that share its own. ``bound`` says that it comes out of a boundary as it is,
    ``stale`` that its memory has been written to since, so that autograd refuses to go on with it.
    """

    __slots__ = (
        "array", "base", "bound", "dtype", "name", "newer", "node", "positions", "requires_grad", "slot", "stale",
        "views",
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
        self.bound = False
        self.stale = False


@dataclass(eq=False)
class Node:
    """A step of the graph.

    ``primitive`` is None for a boundary; ``parameters`` names the last of the ``inputs``, and ``buffers`` are what the
    step found in those; ``shapes`` are those of the outputs (which hold the node, so the node must not hold them: a
    cycle would wait for the garbage collector).
    """

    index: int
    primitive: Primitive | None
    inputs: tuple[Tensor, ...]
    shapes: tuple[Shape, ...]
    parameters: tuple[str, ...] = ()
    buffers: Mapping[str, Array] = field(default_factory=dict)


@dataclass(eq=False)
class CallTrace:
    """One call of a module.

    ``path`` is dotted below the root (empty for the root), ``number`` counts the calls of that module from 0. ``args``
    and ``outputs`` hold, position by position, the tensor *outside* of the call's boundary, or None where there is no
    tensor; ``made`` holds the outputs inside of it, and ``first`` the first tensor among them, inside containers too.
    ``entry`` and ``exit`` are the boundary nodes, None where nothing requires grad or grad mode is off. ``steps`` are
    the nodes that the call has put into the graph.
    """

    path: str
    number: int
    module: Module
    mode: str
    args: tuple[Tensor | None, ...] = ()
    made: tuple[Tensor | None, ...] = ()
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
    goes through a backward before it, so that its numbers rest on central differences.
    """

    roots: tuple[Tensor, ...]
    cotangents: tuple[Array, ...]
    wanted: frozenset[Key] | None
    accumulates: bool = True
    second: bool = False


@dataclass
class Trace:
    """The whole forward pass: nodes in order of creation, calls in order of entry, backward passes, and leaves.

    ``allowed`` is how many of the passes come before the first statement that writes to a module's input or output in
    place, which a full backward hook forbids; None if there is no such statement. ``noise`` falls on every step.
    ``doubled`` says that a backward has left a graph of its own.
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
