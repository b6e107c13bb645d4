"""One call of a network as a network of its own: the called module, new inputs, and the shortest ways to run it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hookcheck.oracle.graph import CallTrace, Tensor, Trace
from hookcheck.topology.model import Apply, Backward, Call, Grad, Input, Statement, Topology, own_parameters, statements
from hookcheck.topology.ops.elementwise import Pow
from hookcheck.topology.ops.reduction import Sum
from hookcheck.topology.tree import Literal, Pack, Ref, Tree
from hookcheck.topology.values import parameter_shapes

NAMES = ("x", "a", "b", "c", "d", "e")
LOSS = Ref("loss")


def calls_alone(topology: Topology, trace: Trace) -> Iterator[Topology]:
    """Each call of a module, the innermost first, run by itself: with one loss of one output, or of all of them.

    What main calls through a context is called so too, or without it.
    """
    seen = set()
    ways = dict.fromkeys(["", *(s.context for s in statements(topology) if isinstance(s, Call))])
    for call in reversed(trace.calls):
        if call.path in seen:
            continue
        seen.add(call.path)
        arguments = _Arguments(topology, call)
        given = tuple(arguments.tree(value) for value in call.given)
        keywords = tuple((key, arguments.tree(value)) for key, value in call.keywords.items())
        outputs = tuple(_outputs(call.result, Ref("y")))
        if len(arguments.inputs) > len(NAMES) or not outputs:
            continue
        leaves = [Ref(i.name) for i in arguments.inputs if i.requires_grad]
        start = f"{call.path}." if call.path else ""
        parameters = [name[len(start) :] for name in parameter_shapes(topology) if name.startswith(start)]
        leaves += [Ref(f"net.{name}") for name in own_parameters(call.module) or parameters[:1]]
        frozen = tuple(name for name in parameters if start + name in topology.frozen)
        plain = replace(topology, module=call.module, inputs=tuple(arguments.inputs), ties=(), frozen=frozen)
        for caller, tail in itertools.product(ways, _tails(outputs, leaves)):
            yield replace(plain, main=(Call("y", "", given, keywords, context=caller), *tail))


class _Arguments:
    """The arguments of a call as trees over new inputs, which are collected."""

    def __init__(self, topology: Topology, call: CallTrace) -> None:
        self.known = {i.name: i for i in topology.inputs}
        self.dtype = topology.dtype
        self.inputs: list[Input] = []
        self.names: dict[int, str] = {}

    def tree(self, value: Any) -> Tree:
        if isinstance(value, Tensor):
            return Ref(self._named(value))
        if isinstance(value, dict):
            return Pack("dict", tuple(map(self.tree, value.values())), tuple(value))
        if isinstance(value, (tuple, list)):
            return Pack("list" if isinstance(value, list) else "tuple", tuple(map(self.tree, value)))
        return Literal(value if isinstance(value, (bool, int, float, str)) else None)

    def _named(self, tensor: Tensor) -> str:
        if id(tensor) not in self.names:
            name = NAMES[len(self.inputs) % len(NAMES)]
            self.names[id(tensor)] = name
            known = self.known.get(tensor.name)
            shape = tensor.array.shape
            if known is not None:
                new = replace(known, name=name, shape=shape, requires_grad=tensor.requires_grad)
            elif tensor.array.dtype.kind in "iu":
                new = Input(name, shape, domain="index", below=int(tensor.array.max(initial=0)) + 1)
            elif tensor.array.dtype.kind == "b":
                new = Input(name, shape, domain="mask")
            else:
                dtype = tensor.dtype if tensor.dtype != self.dtype else ""
                new = Input(name, shape, requires_grad=tensor.requires_grad, dtype=dtype)
            self.inputs.append(new)
        return self.names[id(tensor)]


def _outputs(value: Any, ref: Ref) -> Iterator[Ref]:
    """The floating tensors in what a call gives, with gradients to compute, by where they are."""
    if isinstance(value, Tensor):
        if value.requires_grad:
            yield ref
    elif isinstance(value, (tuple, list, dict)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _outputs(item, Ref(ref.name, (*ref.path, key)))


def _tails(outputs: tuple[Ref, ...], leaves: list[Ref]) -> Iterator[tuple[Statement, ...]]:
    """What is run after the call, the shortest first: one backward, two, with a graph, or asked for one leaf."""
    backward = Backward((LOSS,))
    ways: list[tuple[Statement, ...]] = [
        (backward,),
        (replace(backward, create_graph=True),),
        (replace(backward, retain_graph=True), backward),
        *((Grad("g", (LOSS,), (leaf,)),) for leaf in leaves),
        *((Grad("g", (LOSS,), (leaf,), create_graph=True),) for leaf in leaves),
    ]
    for power in (False, True):
        for way in ways:
            for output in outputs:
                yield (*_loss(output, power), *way)
    if len(outputs) > 1:
        sums = [Apply(f"s{i}", Sum(), (output,)) for i, output in enumerate(outputs)]
        yield (*sums, Backward(tuple(Ref(s.out) for s in sums)))


def _loss(output: Ref, power: bool) -> tuple[Statement, ...]:
    if not power:
        return (Apply("loss", Sum(), (output,)),)
    return Apply("p", Pow(2), (output,)), Apply("loss", Sum(), (Ref("p"),))
