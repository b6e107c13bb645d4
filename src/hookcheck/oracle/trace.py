"""What does the forward pass compute, and what graph does it leave? Worked out in NumPy, without torch.

The trace runs a topology's main program and records a graph as autograd would: a node for every differentiable step,
edges along tensors that require grad. Every module call puts two *boundaries* around its body: an identity over all
positional tensor arguments together, and one over all output tensors together. PyTorch's notes on autograd promise just
that of a full backward hook ("joined by an identity autograd Function so several tensors share one Node"), and
everything that a hook must see follows from these boundaries in one reverse `sweep`.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from hookcheck.hooks.acts import NO_ACTS, Acts, factor
from hookcheck.oracle.dtypes import FLOATING, result_dtype
from hookcheck.oracle.graph import CallTrace, Key, Node, Pass, Tensor, Trace, newest, tensors_in
from hookcheck.oracle.memory import aliased, in_base, overwritten, viewed
from hookcheck.oracle.rounding import Noise
from hookcheck.oracle.second import differentiated
from hookcheck.oracle.sparse import as_read
from hookcheck.oracle.sweep import sweep
from hookcheck.topology.contexts import CONTEXTS, GRAD_MODES, replaced
from hookcheck.topology.model import (
    Apply,
    Backward,
    Call,
    Composite,
    Grad,
    Input,
    Leak,
    Module,
    Recurse,
    Sequential,
    Statement,
    Topology,
    Train,
    Within,
    children,
    inside,
    walk,
    writes,
)
from hookcheck.topology.ops.elementwise import Scale
from hookcheck.topology.ops.tensors import AsTensor
from hookcheck.topology.primitive import Array, Assembled, Primitive, SingleStep
from hookcheck.topology.tensors import TENSORS
from hookcheck.topology.tree import Literal, Pack, Ref, Tree
from hookcheck.topology.values import WHOLE

Names = dict[str, Any]


@np.errstate(all="ignore")  # what a number too large to hold leads to is looked at as a whole (see `overflow`)
def trace(
    topology: Topology,
    numbers: Mapping[str, Array],
    noise: Noise | None = None,
    acts: Acts = NO_ACTS,
    device: str = "cpu",
) -> Trace:
    """Runs the main program of ``topology`` on the given values of parameters and inputs.

    ``noise``, if there is any, falls on what every step gives (see `hookcheck.oracle.rounding`). ``acts`` is what a
    hook on every module changes; ``device`` is that on which torch runs it.
    """
    return _Tracer(topology, numbers, noise, acts, device).run()


class _Tracer:
    """The one place with state: the graph so far, modes, buffers, and the calls that are open."""

    def __init__(
        self, topology: Topology, numbers: Mapping[str, Array], noise: Noise | None, acts: Acts, device: str
    ) -> None:
        self.topology = topology
        self.acts, self.device = acts, device
        self.writing = writes(topology)
        self.modes = ["grad"]
        self.open: list[CallTrace] = []
        self.leaked, self.counts = dict[str, Any](), dict[str, int]()
        self.modules = dict(walk(topology.module))
        self.training = dict.fromkeys(self.modules, topology.training)
        self.buffers: dict[str, dict[str, Array]] = {}
        inputs = {i.name: i for i in topology.inputs}
        leaves = {
            name: Tensor(array, inputs[name].requires_grad, _dtype(inputs[name], topology), name=name)
            if name in inputs
            else Tensor(array, name not in topology.frozen, topology.dtype, name=name)
            for name, array in ((name, noise.moved(array, True) if noise else array) for name, array in numbers.items())
        }
        around = inside(topology)
        plain = {*around} <= {*GRAD_MODES}  # a context may give modules another tensor
        for name, of_class in (*topology.classes, *((i.name, i.tensor) for i in topology.inputs)):
            lost = replaced(around, name not in inputs, leaves[name].requires_grad)
            leaves[name].wraps = bool(of_class) and TENSORS[of_class].wraps and not lost
            leaves[name].contiguous = not of_class and plain
        names: Names = {**{name: leaves[name] for name in inputs}, "leaked": self.leaked}
        self.result = Trace([], [], [], leaves, names, {tensor.dtype for tensor in leaves.values()}, noise)
        self.result.acts = acts
        self.main = names

    def run(self) -> Trace:
        self.body(self.topology.main, "", self.main)
        return self.result

    def body(self, body: tuple[Statement, ...], path: str, names: Names) -> None:
        for statement in body:
            if isinstance(statement, Call):
                target = _joined(path, statement.target)
                args = tuple(self.resolve(arg, path, names) for arg in statement.args)
                kwargs = {key: self.resolve(arg, path, names) for key, arg in statement.kwargs}
                entered, ended = len(self.result.calls), len(self.result.ended)
                names[statement.out] = self.call(target, args, kwargs)
                if statement.context and CONTEXTS[statement.context].repeats:
                    self.result.repeats.append((self.result.calls[entered:], self.result.ended[ended:]))
            elif isinstance(statement, Apply):
                inputs = tuple(self.resolve(ref, path, names) for ref in statement.args)
                names[statement.out] = self.apply(statement.op, inputs, {}, {})
            elif isinstance(statement, Recurse):
                value, depth = self.resolve(statement.value, path, names), names[statement.depth]
                names[statement.out] = self.call(path, (value, depth - 1), {}) if depth else value
            elif isinstance(statement, Leak):
                self.leaked[statement.name] = self.resolve(statement.value, path, names)
            elif isinstance(statement, Within):
                mode = statement.mode if statement.mode in GRAD_MODES else self.modes[-1]
                self.modes.append("grad" if mode == "enable_grad" else mode)
                self.body(statement.body, path, names)
                self.modes.pop()
            elif isinstance(statement, Train):
                below = [at for at in self.training if _is_below(at, statement.target)]
                self.training.update(dict.fromkeys(below, statement.training))
            else:
                self.backward(statement, names)

    def backward(self, statement: Backward | Grad, names: Names) -> None:
        """Notes a pass; works it out at once where its gradients are used later on."""
        outputs, cotangents, inputs = (
            tuple(self.resolve(ref, "", names) for ref in refs)
            for refs in (statement.outputs, statement.cotangents, statement.inputs)
        )
        given = tuple(v.array for v in cotangents) or tuple(np.ones_like(root.array) for root in outputs)
        wanted = frozenset(map(_key, inputs)) or None
        accumulates, named = isinstance(statement, Backward), bool(statement.out)
        noted = Pass(outputs, given, wanted, accumulates, self.result.doubled, named, len(self.result.nodes))
        self.result.passes.append(noted)
        self.result.recorded |= statement.create_graph
        if named:
            swept = sweep(self.result, noted, joined=self.acts.backward)
            tensors = differentiated(self, noted, cotangents, swept) if statement.create_graph else {}
            gradients = (tensors.get(_key(t)) or _constant(swept.asked.get(_key(t)), t) for t in inputs)
            names[statement.out] = tuple(gradients)

    def call(self, target: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        path = self.canonical(target)
        module = self.modules[path]
        number = self.counts[path] = self.counts.get(path, -1) + 1
        call = CallTrace(path, number, module, self.modes[-1], len(self.result.passes))
        self.result.calls.append(call)
        call.given, call.keywords = args, kwargs
        if self.acts.args:
            args = (*map(self.scaled, args[:1]), *args[1:])
        call.args = tuple(arg if isinstance(arg, Tensor) else None for arg in args)
        call.entry, inner = self.boundary(call.args)
        inward = [inside or outside for inside, outside in zip(inner, args)]
        self.open.append(call)
        result = call.result = self.forward(module, path, tuple(inward), kwargs)
        self.open.pop()
        self.result.ended.append(call)
        call.left = newest((args, kwargs)) if self.writing else (args, kwargs)
        if self.acts.outputs:
            result = tuple(map(self.scaled, result)) if type(result) is tuple else self.scaled(result)
        outputs = result if isinstance(result, tuple) else (result,)
        call.outputs_inside = tuple(o if isinstance(o, Tensor) else None for o in outputs)
        call.first = _first(result)
        call.container = "tensor" if isinstance(result, Tensor) else type(result).__name__
        call.exit, call.outputs = self.boundary(call.outputs_inside)
        if call.entry:
            call.entry.exit = -1 if call.exit is None else call.exit.index
        shown = [outside or inside for outside, inside in zip(call.outputs, outputs)]
        if not isinstance(result, tuple):
            return shown[0]
        named: Any = type(result)
        return named(*shown) if hasattr(result, "_fields") else tuple(shown)

    def forward(self, module: Module, path: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        layer = module.assembled() if isinstance(module, Assembled) else module
        if isinstance(layer, Composite):
            positional = [name for name in layer.takes if name not in layer.keywords]
            names: Names = {**dict.fromkeys(layer.takes), **dict(zip(positional, args)), **kwargs}
            self.body(layer.body, path, names)
            return self.resolve(layer.gives, path, names)
        if isinstance(layer, Sequential):
            (value,) = args
            for name, _ in children(layer):
                value = self.call(_joined(path, name), (value,), {})
            return value
        if not isinstance(layer, SingleStep):
            raise TypeError(f"an nn.{type(layer).__name__} is never called")
        parameters = {key: self.leaf(path, key) for key in layer.parameters()}
        if path not in self.buffers:
            self.buffers[path] = layer.buffers()
        buffers = self.buffers[path]
        tensors = tuple(tensor for value in (args, kwargs) for tensor in tensors_in(value))
        if not self.training[path]:
            return layer.result(self.step(layer.evaluated(), tensors, parameters, buffers))
        if buffers:
            arrays = {**{key: t.array for key, t in parameters.items()}, **buffers}
            self.buffers[path] = {**buffers, **layer.updated(tuple(t.array for t in tensors), arrays)}
        return layer.result(self.step(layer, tensors, parameters, buffers))

    def apply(
        self,
        primitive: Primitive,
        inputs: tuple[Tensor, ...],
        parameters: dict[str, Tensor],
        buffers: Mapping[str, Array],
    ) -> Any:
        return primitive.result(self.step(primitive, inputs, parameters, buffers))

    def step(
        self,
        primitive: Primitive,
        inputs: tuple[Tensor, ...],
        parameters: dict[str, Tensor],
        buffers: Mapping[str, Array],
    ) -> tuple[Tensor, ...]:
        """The outputs of one step, and its node if one of its operands requires grad."""
        if primitive.passes:
            return inputs[:1]
        written = inputs[:1] if primitive.writes else ()
        if written:
            inputs = (in_base(self, inputs[0]), *inputs[1:])
        operands = (*inputs, *parameters.values())
        primitive = as_read(primitive, operands)

        def forward(given: tuple[Array, ...]) -> tuple[Array, ...]:
            arrays = dict(zip(parameters, given[len(inputs) :]))
            return primitive.forward(given[: len(inputs)], {**arrays, **buffers})

        given = tuple(t.array for t in operands)
        arrays = forward(given)
        noise = self.result.noise
        if noise:
            within = noise.cancelled(forward, given, [array for array in given if array.dtype.kind in "fc"])
            arrays = tuple(noise.moved(array, primitive.exact, size) for array, size in zip(arrays, within))
        dtypes = [primitive.casts or _result(operands, array) for array in arrays]
        self.result.dtypes.update(filter(None, [*dtypes, primitive.precision(self.device)]))
        if written and written[0].bound and self.modes[-1] == "grad":
            self.forbidden()
        node = (
            self.node(primitive, operands, arrays, tuple(parameters), buffers)
            if self.leads(primitive, operands, len(arrays))
            else None
        )
        outputs = tuple(
            Tensor(array, node is not None and dtype in FLOATING, dtype, node, slot)
            for slot, (array, dtype) in enumerate(zip(arrays, dtypes))
        )
        wraps = isinstance(primitive, AsTensor) and TENSORS[primitive.tensor].wraps
        if wraps or any(t.wraps for t in operands):
            for output in outputs:
                output.wraps = True
        if written:
            return (overwritten(self, written[0], outputs[0]),)
        return viewed(primitive, inputs[0], outputs) if primitive.views and self.writing else outputs

    def leads(self, primitive: Primitive, operands: tuple[Tensor, ...], count: int) -> bool:
        """Whether autograd records the step: grad mode is on, and it leads to an operand that requires grad."""
        if self.modes[-1] != "grad" or not any(t.requires_grad for t in operands):
            return False
        reached = primitive.reaches((True,) * count)
        of_inputs = reached is None or any(there and t.requires_grad for there, t in zip(reached, operands))
        return of_inputs or any(t.requires_grad for t in operands[len(reached or ()) :])

    def scaled(self, value: Any) -> Any:
        """What a hook that scales makes of an argument or an output."""
        floating = isinstance(value, Tensor) and value.dtype in FLOATING
        return self.step(Scale(factor(self.acts)), (value,), {}, {})[0] if floating else value

    def boundary(self, tensors: tuple[Tensor | None, ...]) -> tuple[Node | None, tuple[Tensor | None, ...]]:
        """The identity over those of ``tensors`` that are tensors; requires_grad of each stays as it was."""
        inputs = tuple(t for t in tensors if t is not None)
        if self.modes[-1] != "grad" or not any(t.requires_grad for t in inputs):
            return None, tensors
        node = self.node(None, inputs, tuple(t.array for t in inputs), ())
        node.positions = tuple(position for position, t in enumerate(tensors) if t is not None)
        outputs = iter([_passed(node, slot, t, self.writing) for slot, t in enumerate(inputs)])
        return node, tuple(t if t is None else next(outputs) for t in tensors)

    def node(
        self,
        primitive: Primitive | None,
        inputs: tuple[Tensor, ...],
        outputs: tuple[Array, ...],
        names: tuple[str, ...],
        buffers: Mapping[str, Array] | None = None,
    ) -> Node:
        shapes = tuple(array.shape for array in outputs)
        opaque = primitive is not None and bool(inputs) and primitive.opaque(inputs[0].dtype, self.device)
        node = Node(len(self.result.nodes), primitive, inputs, shapes, names, buffers or {}, opaque=opaque)
        self.result.nodes.append(node)
        for call in self.open:
            call.steps.append(node)
        return node

    def leaf(self, path: str, name: str) -> Tensor:
        leaf: Tensor = newest(self.result.leaves[self.canonical(_joined(path, name))])
        return leaf

    def forbidden(self) -> None:
        """Notes that what comes now writes to a module's input or output in place, or uses one that was written to."""
        if self.result.allowed is None:
            self.result.allowed = len(self.result.passes)

    def canonical(self, path: str) -> str:
        """The path under which torch lists the module first: ties lead back to their source."""
        for target, source in self.topology.ties:
            if path == target or path.startswith(f"{target}."):
                return self.canonical(source + path[len(target) :])
        return path

    def resolve(self, tree: Tree, path: str, names: Names) -> Any:
        """What a tree stands for: the newest versions of tensors, containers, and what is no tensor."""
        if isinstance(tree, Literal):
            return tree.value
        if isinstance(tree, Ref):
            owner, _, attribute = tree.name.partition(".")
            value: Any = self.leaf(path, attribute) if attribute else names[owner]
            for part in tree.path:
                dotted = isinstance(part, str) and part.startswith(".")
                value = getattr(value, str(part)[1:]) if dotted else value[part]
            latest = newest(value) if isinstance(value, Tensor) else value
            if isinstance(latest, Tensor) and latest.stale:
                self.forbidden()
            return latest
        return _packed(tree, [self.resolve(item, path, names) for item in tree.items])


def _packed(pack: Pack, items: list[Any]) -> Any:
    if pack.kind == "dict":
        return dict(zip(pack.keys, items))
    if pack.kind == "namedtuple":
        return namedtuple("Pair", pack.keys)(*items)
    if pack.kind == "dataclass":
        return SimpleNamespace(**dict(zip(pack.keys, items)))
    return tuple(items) if pack.kind == "tuple" else items


def _first(value: Any) -> Tensor | None:
    """The first tensor as torch's legacy hook looks for it: the first item again and again, of a dict's the tensors."""
    while not isinstance(value, Tensor):
        if not isinstance(value, (tuple, list, dict)) or not value:
            return None
        direct = [item for item in value.values() if isinstance(item, Tensor)] if isinstance(value, dict) else value
        value = direct[0] if direct else None
    return value


def _passed(node: Node, slot: int, tensor: Tensor, writing: bool) -> Tensor:
    """The output of a boundary: the same memory under another version."""
    out = Tensor(tensor.array, tensor.requires_grad, tensor.dtype, node, slot)
    if writing:
        aliased(out, tensor, tensor.positions)
        out.bound = out if tensor.requires_grad else None
    return out


def _result(operands: tuple[Tensor, ...], array: Array) -> str:
    first = operands[0].dtype
    if array.dtype.kind == "f" and first in ("float64", "float32") and all(t.dtype == first for t in operands):
        return first
    return result_dtype([(t.dtype, t.array.ndim) for t in operands], array.dtype.kind)


def _dtype(i: Input, topology: Topology) -> str:
    if i.domain in WHOLE:
        return "bool" if i.domain == "mask" else "int64"
    return i.dtype or topology.dtype


def _key(tensor: Tensor) -> Key:
    """How a pass names the gradient of a tensor."""
    return tensor.name if tensor.node is None else (tensor.node.index, tensor.slot)


def _constant(gradient: Array | None, of: Tensor) -> Tensor | None:
    return None if gradient is None else Tensor(gradient, False, of.dtype)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name


def _is_below(path: str, target: str) -> bool:
    return not target or path == target or path.startswith(f"{target}.")
