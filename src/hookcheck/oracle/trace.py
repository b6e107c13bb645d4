"""What does the forward pass compute, and what graph does it leave? Worked out in NumPy, without torch.

The trace runs a topology's main program and records a graph as autograd would: a node for every differentiable step,
edges along tensors that require grad. Every module call puts two *boundaries* around its body: an identity over all
positional tensor arguments together, and one over all output tensors together. PyTorch's notes on autograd promise just
that of a full backward hook ("joined by an identity autograd Function so several tensors share one Node"), and
everything that a hook must see follows from these boundaries in one reverse `sweep`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np

from hookcheck.topology.model import (
    Apply,
    Array,
    Backward,
    Call,
    Composite,
    Leak,
    Literal,
    Module,
    ModuleList,
    Primitive,
    Ref,
    Sequential,
    Shape,
    Statement,
    Topology,
    Tree,
    Within,
    children,
    walk,
)


@dataclass(eq=False)
class Tensor:
    """A tensor of the forward pass. ``node`` made it as its output ``slot``; a leaf has a ``name`` instead."""

    array: Array
    requires_grad: bool
    node: Node | None = None
    slot: int = 0
    name: str = ""


@dataclass(eq=False)
class Node:
    """A step of the graph.

    ``primitive`` is None for a boundary; ``parameters`` names the last of the ``inputs``; ``shapes`` are those of the
    outputs (which hold the node, so the node must not hold them: a cycle would wait for the garbage collector).
    """

    index: int
    primitive: Primitive | None
    inputs: tuple[Tensor, ...]
    shapes: tuple[Shape, ...]
    parameters: tuple[str, ...] = ()


@dataclass(eq=False)
class CallTrace:
    """One call of a module.

    ``path`` is dotted below the root (empty for the root), ``number`` counts the calls of that module from 0. ``args``
    and ``outputs`` hold, position by position, the tensor *outside* of the call's boundary, or None where there is no
    tensor; ``made`` holds the outputs inside of it. ``entry`` and ``exit`` are the boundary nodes, None where nothing
    requires grad or grad mode is off. ``steps`` are the nodes that the call has put into the graph.
    """

    path: str
    number: int
    module: Module
    mode: str
    args: tuple[Tensor | None, ...] = ()
    made: tuple[Tensor | None, ...] = ()
    outputs: tuple[Tensor | None, ...] = ()
    entry: Node | None = None
    exit: Node | None = None
    steps: list[Node] = field(default_factory=list)

    @property
    def subject(self) -> str:
        """How people are told of the call: ``net.block.fc#0``."""
        return f"{'.'.join(['net', self.path] if self.path else ['net'])}#{self.number}"


@dataclass(frozen=True)
class Pass:
    """One backward: its roots with a cotangent each, and the names of the leaves asked for (None for all)."""

    roots: tuple[Tensor, ...]
    cotangents: tuple[Array, ...]
    wanted: frozenset[str] | None


@dataclass(frozen=True)
class Trace:
    """The whole forward pass: nodes in order of creation, calls in order of entry, backward passes, and leaves."""

    nodes: list[Node]
    calls: list[CallTrace]
    passes: list[Pass]
    leaves: dict[str, Tensor]
    names: Mapping[str, Value]


Value = Union[Tensor, None, bool, int, float, str, "tuple[Any, ...]", "list[Any]", "dict[str, Any]"]


def trace(topology: Topology, numbers: Mapping[str, Array]) -> Trace:
    """Runs the main program of ``topology`` on the given values of parameters and inputs."""
    return _Tracer(topology, numbers).run()


class _Tracer:
    """The one place with state: the graph so far, the grad mode, and the calls that are open."""

    def __init__(self, topology: Topology, numbers: Mapping[str, Array]) -> None:
        self.topology = topology
        self.modes = ["grad"]
        self.open: list[CallTrace] = []
        self.leaked: dict[str, Value] = {}
        self.counts: dict[str, int] = {}
        self.modules = dict(walk(topology.module))
        inputs = {i.name: i.requires_grad for i in topology.inputs}
        self.leaves = {
            name: Tensor(array, inputs.get(name, name not in topology.frozen), name=name)
            for name, array in numbers.items()
        }
        self.names: dict[str, Value] = {name: self.leaves[name] for name in inputs}
        self.names["leaked"] = self.leaked
        self.result = Trace([], [], [], self.leaves, self.names)

    def run(self) -> Trace:
        self.body(self.topology.main, "", self.names)
        return self.result

    def body(self, body: tuple[Statement, ...], path: str, names: dict[str, Value]) -> None:
        for statement in body:
            if isinstance(statement, Call):
                target = f"{path}.{statement.target}" if path and statement.target else path or statement.target
                args = tuple(_resolve(arg, names) for arg in statement.args)
                kwargs = {key: _resolve(arg, names) for key, arg in statement.kwargs}
                names[statement.out] = self.call(target, args, kwargs)
            elif isinstance(statement, Apply):
                inputs = tuple(_tensor(_resolve(ref, names)) for ref in statement.args)
                (names[statement.out],) = self.step(statement.op, inputs, {})
            elif isinstance(statement, Leak):
                self.leaked[statement.name] = _resolve(statement.value, names)
            elif isinstance(statement, Within):
                self.modes.append("grad" if statement.mode == "enable_grad" else statement.mode)
                self.body(statement.body, path, names)
                self.modes.pop()
            elif isinstance(statement, Backward):
                self.result.passes.append(_pass(statement, names))

    def call(self, target: str, args: tuple[Value, ...], kwargs: Mapping[str, Value]) -> Value:
        path = self.canonical(target)
        module = self.modules[path]
        number = self.counts[path] = self.counts.get(path, -1) + 1
        call = CallTrace(path, number, module, self.modes[-1])
        self.result.calls.append(call)
        call.args = tuple(arg if isinstance(arg, Tensor) else None for arg in args)
        call.entry, inner = self.boundary(call.args)
        args = tuple(inside or outside for inside, outside in zip(inner, args))
        self.open.append(call)
        result = self.forward(module, path, args, kwargs)
        self.open.pop()
        outputs = result if isinstance(result, tuple) else (result,)
        call.made = tuple(o if isinstance(o, Tensor) else None for o in outputs)
        call.exit, call.outputs = self.boundary(call.made)
        shown = tuple(outside or inside for outside, inside in zip(call.outputs, outputs))
        return shown if isinstance(result, tuple) else shown[0]

    def forward(self, module: Module, path: str, args: tuple[Value, ...], kwargs: Mapping[str, Value]) -> Value:
        if isinstance(module, Composite):
            positional = [name for name in module.takes if name not in module.keywords]
            names = {**dict(zip(positional, args)), **kwargs}
            self.body(module.body, path, names)
            return _resolve(module.gives, names)
        if isinstance(module, Sequential):
            (value,) = args
            for name, _ in children(module):
                value = self.call(f"{path}.{name}" if path else name, (value,), {})
            return value
        if isinstance(module, ModuleList):
            raise TypeError("an nn.ModuleList is never called")
        prefix = f"{path}." if path else ""
        parameters = {key: self.leaves[self.canonical(f"{prefix}{key}")] for key in module.parameters()}
        (output,) = self.step(module, tuple(_tensor(v) for v in (*args, *kwargs.values())), parameters)
        return output

    def step(
        self, primitive: Primitive, inputs: tuple[Tensor, ...], parameters: dict[str, Tensor]
    ) -> tuple[Tensor, ...]:
        arrays = primitive.forward(tuple(t.array for t in inputs), {k: t.array for k, t in parameters.items()})
        operands = (*inputs, *parameters.values())
        if self.modes[-1] != "grad" or not any(t.requires_grad for t in operands):
            return tuple(Tensor(array, False) for array in arrays)
        node = self.node(primitive, operands, arrays, tuple(parameters))
        return tuple(Tensor(array, True, node, slot) for slot, array in enumerate(arrays))

    def boundary(self, tensors: tuple[Tensor | None, ...]) -> tuple[Node | None, tuple[Tensor | None, ...]]:
        """The identity over those of ``tensors`` that are tensors; requires_grad of each stays as it was."""
        inputs = tuple(t for t in tensors if t is not None)
        if self.modes[-1] != "grad" or not any(t.requires_grad for t in inputs):
            return None, tensors
        node = self.node(None, inputs, tuple(t.array for t in inputs), ())
        outputs = iter([Tensor(t.array, t.requires_grad, node, slot) for slot, t in enumerate(inputs)])
        return node, tuple(t if t is None else next(outputs) for t in tensors)

    def node(
        self,
        primitive: Primitive | None,
        inputs: tuple[Tensor, ...],
        outputs: tuple[Array, ...],
        names: tuple[str, ...],
    ) -> Node:
        node = Node(len(self.result.nodes), primitive, inputs, tuple(array.shape for array in outputs), names)
        self.result.nodes.append(node)
        for call in self.open:
            call.steps.append(node)
        return node

    def canonical(self, path: str) -> str:
        """The path under which torch lists the module first: ties lead back to their source."""
        for target, source in self.topology.ties:
            if path == target or path.startswith(f"{target}."):
                return self.canonical(source + path[len(target) :])
        return path


def _resolve(tree: Tree, names: Mapping[str, Value]) -> Value:
    if isinstance(tree, Literal):
        return tree.value
    if isinstance(tree, Ref):
        value: Any = names[tree.name]
        for part in tree.path:
            value = value[part]
        found: Value = value
        return found
    items = [_resolve(item, names) for item in tree.items]
    if tree.kind == "dict":
        return dict(zip(tree.keys, items))
    return tuple(items) if tree.kind == "tuple" else items


def _tensor(value: Value) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"{value!r} stands where a tensor is needed")
    return value


def _pass(statement: Backward, names: Mapping[str, Value]) -> Pass:
    roots = tuple(_tensor(_resolve(ref, names)) for ref in statement.outputs)
    given = tuple(_tensor(_resolve(ref, names)).array for ref in statement.cotangents)
    wanted = frozenset(_tensor(_resolve(ref, names)).name for ref in statement.inputs)
    return Pass(roots, given or tuple(np.ones_like(root.array) for root in roots), wanted or None)
