"""What is run? The topology: modules, inputs and the program over them, as frozen plain data.

A topology is a straight-line program. Its *module* is a tree of layers and of modules of our own, each of which has a
body of statements; its *main* statements call the module, compute losses and run backward. Values are named once and
never assigned again, except by in-place operations. Everything that generates, runs, prints, judges or stores a
topology reads these classes and nothing else.

Fields that are at their default are left out of the canonical JSON, so a field can be added without changing the id of
any topology that exists (see `codec`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import Field, dataclass, field, fields
from functools import cached_property, wraps
from typing import Any, TypeVar, Union

import numpy as np

from hookcheck.topology.primitive import Assembled, Layer, Op, Shape, SingleStep
from hookcheck.topology.tensors import SPARSE_GRADIENT
from hookcheck.topology.tree import Ref, Tree

KEY = "key"
"""What the metadata of a field has, whose key in JSON is an older name: ids rest on the keys."""


def key(part: Field[Any]) -> str:
    """The key of a field in JSON."""
    name: str = part.metadata.get(KEY, part.name)
    return name


@dataclass(frozen=True)
class Call:
    """``out = self.target(*args, **kwargs)``; the empty target in the main program is the root module itself.

    ``context`` is what makes the call, one of the `CALLERS`, or empty.
    """

    out: str
    target: str
    args: tuple[Tree, ...]
    kwargs: tuple[tuple[str, Tree], ...] = ()
    context: str = field(default="", metadata={KEY: "through"})


@dataclass(frozen=True)
class Apply:
    """``out = op(*args)``; an operation in place hands its first argument on under a new name."""

    out: str
    op: Op
    args: tuple[Ref, ...]


@dataclass(frozen=True)
class Recurse:
    """``out = self(value, depth - 1) if depth else value``, with the module's own parameter ``depth`` (bodies only)."""

    out: str
    value: Ref
    depth: str


@dataclass(frozen=True)
class Leak:
    """Hands the tensor ``value`` out of the module past its outputs; main sees it as ``Ref("leaked", (name,))``."""

    name: str
    value: Ref


@dataclass(frozen=True)
class Within:
    """Statements run in a context, one of `MANAGERS`: under a grad mode, or (main only) in what must change nothing."""

    mode: str
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Train:
    """``net.target.train()``, or ``.eval()``; the empty target is the root (main only)."""

    target: str = ""
    training: bool = True


@dataclass(frozen=True)
class Backward:
    """``torch.autograd.backward(outputs, cotangents)``; ``cotangents`` is empty for a scalar loss (main only).

    ``inputs`` are the leaves whose gradients are asked for; empty means all of them. Where ``out`` is given they are
    intermediates, and ``out`` is a tuple of what this leaves in their ``.grad``.
    """

    outputs: tuple[Ref, ...]
    cotangents: tuple[Ref, ...] = ()
    inputs: tuple[Ref, ...] = ()
    retain_graph: bool = False
    create_graph: bool = False
    out: str = ""


@dataclass(frozen=True)
class Grad:
    """``out = torch.autograd.grad(outputs, inputs, cotangents, allow_unused=True)``, a tuple (main only).

    ``inputs`` are leaves, parameters or intermediates. ``context`` is the one that asks for them, or empty.
    """

    out: str
    outputs: tuple[Ref, ...]
    inputs: tuple[Ref, ...]
    cotangents: tuple[Ref, ...] = ()
    retain_graph: bool = False
    create_graph: bool = False
    context: str = field(default="", metadata={KEY: "through"})


Statement = Union[Call, Apply, Recurse, Leak, Within, Train, Backward, Grad]


@dataclass(frozen=True)
class Composite:
    """A module of our own: children, the names that ``forward`` takes, its body and what it gives back.

    ``keywords`` names those of ``takes`` that are keyword-only. ``parameters`` are its own, by name and shape; a body
    refers to them, and to those of children, as ``Ref("self.weight")``, main as ``Ref("net.weight")``.
    """

    children: tuple[tuple[str, Module], ...]
    takes: tuple[str, ...]
    body: tuple[Statement, ...]
    gives: Tree
    keywords: tuple[str, ...] = ()
    parameters: tuple[tuple[str, Shape], ...] = ()


@dataclass(frozen=True)
class Sequential:
    """``nn.Sequential``: each child is called with the output of the one before it."""

    children: tuple[Module, ...]


@dataclass(frozen=True)
class ModuleList:
    """``nn.ModuleList``: holds children for a body to call as ``name.0``; it is never called itself."""

    children: tuple[Module, ...]


@dataclass(frozen=True)
class ModuleDict:
    """``nn.ModuleDict``: holds named children for a body to call as ``name.key``; it is never called itself."""

    children: tuple[tuple[str, Module], ...]


@dataclass(frozen=True)
class ParameterList:
    """``nn.ParameterList``: parameters of such shapes for a body to use as ``Ref("self.name.0")``; never called."""

    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class ParameterDict:
    """``nn.ParameterDict``: named parameters for a body to use as ``Ref("self.name.key")``; never called."""

    shapes: tuple[tuple[str, Shape], ...]


Module = Union[Layer, Composite, Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict]


@dataclass(frozen=True)
class Input:
    """A tensor that main starts from: an argument of the root module, or a cotangent.

    ``shape`` in elements; the numbers come from the topology's seed, the name and the ``domain`` (see `values`), of
    which integer ones are less than ``below``. ``dtype`` is that of the topology where it is empty and the domain is
    not one of integers or masks. ``tensor`` is its class or layout, one of `TENSORS`; empty for a plain one.
    """

    name: str
    shape: Shape
    requires_grad: bool = False
    domain: str = "real"
    below: int = 0
    dtype: str = ""
    tensor: str = ""


@dataclass(frozen=True)
class Topology:
    """A module under test with its inputs, its loss and the way that it is run.

    ``ties`` are pairs of dotted paths below the root: after construction the first is made the very object that the
    second is (a shared module or a shared parameter), which must come earlier in torch's order of registration.
    ``classes`` are the parameters that are of a class or layout of `TENSORS`, each with that. ``frozen`` are parameters
    that do not require grad. ``dtype`` is one of `DTYPES`. ``device`` is ``any`` or the one kind of device that the
    topology is about. ``counting`` gives real tensors the numbers 1, 2, 3, … in place of drawn ones, which people like
    to read.
    """

    module: Module
    inputs: tuple[Input, ...]
    main: tuple[Statement, ...]
    training: bool = True
    dtype: str = "float64"
    device: str = "any"
    seed: int = 0
    frozen: tuple[str, ...] = ()
    ties: tuple[tuple[str, str], ...] = ()
    counting: bool = False
    classes: tuple[tuple[str, str], ...] = ()

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, f.name) for f in fields(self)))

    def __hash__(self) -> int:
        """The hash of the fields, worked out once: a topology is a key of caches, and it is deep."""
        return self._hash

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: the hash of a text differs from process to process."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


Answer = TypeVar("Answer")


def worked_out_once(function: Callable[[Topology], Answer]) -> Callable[[Topology], Answer]:
    """The function, whose answer each topology keeps: id, needs and size travel with it, and go with it."""
    name = f"_{function.__name__}"

    @wraps(function)
    def cached(topology: Topology) -> Answer:
        held = vars(topology)
        if name not in held:
            held[name] = function(topology)
        answer: Answer = held[name]
        return answer

    return cached


def children(module: Module) -> tuple[tuple[str, Module], ...]:
    """The named children of a module, in torch's order of registration."""
    if isinstance(module, (Composite, ModuleDict)):
        return module.children
    if isinstance(module, (Sequential, ModuleList)):
        return tuple((str(i), child) for i, child in enumerate(module.children))
    return children(module.assembled()) if isinstance(module, Assembled) else ()


def own_parameters(module: Module) -> dict[str, Shape]:
    """Name and shape of the parameters that are the module's own, its children's left out."""
    if isinstance(module, ParameterList):
        return {str(i): shape for i, shape in enumerate(module.shapes)}
    if isinstance(module, ParameterDict):
        return dict(module.shapes)
    if isinstance(module, Composite):
        return dict(module.parameters)
    return module.parameters() if isinstance(module, SingleStep) else {}


def walk(module: Module, path: str = "") -> Iterator[tuple[str, Module]]:
    """The module and all below it with their dotted paths, parents first; the root's path is empty."""
    yield path, module
    for name, child in children(module):
        yield from walk(child, f"{path}.{name}" if path else name)


def statements(topology: Topology) -> Iterator[Statement]:
    """Every statement of main and of every body, those inside ``Within`` included."""
    bodies = [topology.main, *(m.body for _, m in walk(topology.module) if isinstance(m, Composite))]
    for body in bodies:
        yield from _flat(body)


def _flat(body: tuple[Statement, ...]) -> Iterator[Statement]:
    for statement in body:
        yield statement
        if isinstance(statement, Within):
            yield from _flat(statement.body)


@worked_out_once
def tensor_classes(topology: Topology) -> tuple[str, ...]:
    """The classes and layouts of `TENSORS` that inputs, parameters and values are of, each once."""
    applied = (getattr(s.op, "tensor", "") for s in statements(topology) if isinstance(s, Apply))
    every = [*(i.tensor for i in topology.inputs), *(name for _, name in topology.classes), *applied]
    return tuple(dict.fromkeys(name for name in every if name))


@worked_out_once
def tensor_words(topology: Topology) -> tuple[str, ...]:
    """The same, and that there is a sparse gradient where a layer is made to give its weight one."""
    sparse = any(getattr(module, "sparse", False) for _, module in walk(topology.module))
    return (*tensor_classes(topology), *[SPARSE_GRADIENT] * sparse)


@worked_out_once
def inside(topology: Topology) -> tuple[str, ...]:
    """The contexts that the network runs inside of."""
    named = (s.mode if isinstance(s, Within) else getattr(s, "context", "") for s in statements(topology))
    return tuple(name for name in dict.fromkeys(named) if name)


@worked_out_once
def nesting(topology: Topology) -> frozenset[tuple[str, str]]:
    """Each context that something runs inside of with each that is within it, which may be the same one: around the
    statements, or around the call of the module whose body has them."""
    modules = dict(walk(topology.module))

    def pairs(body: tuple[Statement, ...], around: tuple[str, ...], path: str) -> Iterator[tuple[str, str]]:
        for statement in body:
            name = statement.mode if isinstance(statement, Within) else getattr(statement, "context", "")
            yield from ((outer, name) for outer in around if name)
            inner = (*around, name) if name else around
            if isinstance(statement, Within):
                yield from pairs(statement.body, inner, path)
            elif isinstance(statement, Call):
                target = ".".join(part for part in (path, statement.target) if part)
                for below, module in walk(modules[target], target):
                    if isinstance(module, Composite):
                        yield from pairs(module.body, inner, below)

    return frozenset(pairs(topology.main, (), ""))


@worked_out_once
def writes(topology: Topology) -> bool:
    """Whether any step works in place: only then it matters which tensors share memory."""
    ops = [statement.op for statement in statements(topology) if isinstance(statement, Apply)]
    return any(step.writes for step in (*ops, *(m for _, m in walk(topology.module) if isinstance(m, SingleStep))))


@worked_out_once
def size(topology: Topology) -> tuple[int, int]:
    """How large a topology is, for choosing the smallest counterexample: statements and modules, then elements."""
    elements = sum(int(np.prod(i.shape)) for i in topology.inputs)
    steps = sum(1 for _ in statements(topology)) + sum(1 for _ in walk(topology.module))
    return steps, elements
