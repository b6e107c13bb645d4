"""compiled: torch.compile is at work on a network, on a part of it, on all but a part, on backward, or was before.

It may be at work within another context: what calls the compiled call, is around it, or around all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from hookcheck.topology.contexts import ASKING, CALLER, COMPILING, CONTEXTS, STEPS
from hookcheck.topology.families import context, tensor_class
from hookcheck.topology.families.drawing import SEEDS, Draw, body_of, linears, losses, named, output_shape, shapes
from hookcheck.topology.families.tensors_in_contexts import refused
from hookcheck.topology.layers.activation import Sigmoid, Tanh
from hookcheck.topology.model import (
    Backward,
    Call,
    Composite,
    Input,
    Leak,
    Module,
    Sequential,
    Statement,
    Topology,
    Within,
    inside,
)
from hookcheck.topology.tensors import SPARSE_GRADIENT, TENSORS
from hookcheck.topology.tree import Ref
from hookcheck.topology.values import parameter_shapes

APART, BACKWARD = "compiler_disable", "compiled_autograd"
CALLS = tuple(name for name in COMPILING if CONTEXTS[name].wraps == CALLER and name != APART)
"""The ways to call a module in which torch.compile is at work."""

MODULES = ("compile_module_eager", "compile_module_aot_eager")
"""Those that make another module of it; it is called from outside of the network, as programs call it."""

AOT_EAGER = ("compile_aot_eager", "compile_module_aot_eager", "module_compile_aot_eager")
"""Those that trace backward too."""

WHERE = ("all", "a part", "all but a part", "backward")
"""What is compiled, or called by what has compiled before."""

WAYS = tuple((where, call) for where in WHERE for call in CALLS if where.startswith("all") or call not in MODULES)
"""Each of those with the calls by which it may be; backward takes none."""


NOT_AROUND: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (context.OFFERED[CALLER], MODULES, "a module that torch.compile gives is called as the root"),
    ((*CALLS, APART), CALLS, "what is compiled within what is compiled goes into its graph, or is disabled as that is"),
    ((APART,), (APART,), "what is disabled has its parts disabled as well"),
    ((BACKWARD,), (BACKWARD,), "there is one compiled autograd at a time"),
    (("vmap", "vjp"), (*CALLS, APART), "torch.func has no transform of what is compiled (pytorch#100320)"),
    (("dual_inputs",), (*AOT_EAGER, BACKWARD), "what these make of a graph is an autograd.Function without a jvp"),
    (("is_grads_batched",), (BACKWARD,), "compiled autograd cannot trace batched gradients"),
    (("fully_shard",), (BACKWARD,), "the gradients are wrong, without any hook (seen on 2.9.1)"),
    (("module_tracker",), MODULES, "Dynamo takes the tracker's weak reference and the module for two, and raises"),
    (context.OFFERED[STEPS], MODULES, "hooks on all modules are called more often at each call"),
)
"""Contexts in which those that compile are not drawn, those, and the reason."""


@dataclass(frozen=True)
class Graph:
    """What there is to choose of layers of which some are in a graph: ``where`` and by which ``call`` they are
    compiled, where ``losses`` come from (the output ``y`` and what the first layer makes, ``h``), whether the input
    ``learns``, the context that is in the graph around the first layer (``inner``), and those around it all
    (``outer``)."""

    where: str = "all"
    call: str = "compile_aot_eager"
    losses: tuple[str, ...] = ("y",)
    learns: bool = True
    inner: str = ""
    outer: tuple[str, ...] = ()


GRAPHS = (
    Graph(losses=("h", "y"), outer=("no_grad",)),
    Graph(inner="no_grad"),
    Graph(inner="checkpoint", outer=("functional_call",)),
    Graph(inner="enable_grad", outer=("autocast", "checkpoint")),
    Graph("all but a part", learns=False),
    Graph("a part"),
    Graph("a part", "module_compile_aot_eager"),
    Graph(call="module_compile_aot_eager", losses=("h",)),
)
"""Few choices at a time, so that few share the blame."""


@st.composite
def topologies(draw: Draw) -> Topology:
    """A small network, since compiling is slow, some of which is called so; some have tensors of a class or layout,
    some are larger graphs, and some of the others are in another context."""
    if draw(st.sampled_from([False, False, True])):
        return draw(of_classes())
    if draw(st.sampled_from([False, False, False, True])):
        return draw(st.sampled_from(GRAPHS).flatmap(of_graph))
    topology = draw(of_layers())
    fitting = [(place, name) for place, name in context.EACH if takes(topology, {place: (name,)})]
    place, name = draw(st.sampled_from([("", ""), *fitting]))
    return within(topology, {place: (name,)}) if name else topology


@st.composite
def of_layers(draw: Draw) -> Topology:
    """A Linear alone or with an activation."""
    shape = draw(shapes(2, 2))  # of one dimension a Linear gives a view, and a compiled function a tensor of its own
    layers: tuple[Module, ...] = (draw(linears(shape[-1])), *draw(st.sampled_from([(), (), (Sigmoid(),), (Tanh(),)])))
    where, call = draw(st.sampled_from(WAYS))
    module = _module(draw, layers, {"a part": call, "all but a part": APART}.get(where, ""))
    inputs, backward = draw(losses((("y", Ref("y"), output_shape(Sequential(layers), shape)),)))
    main = (Call("y", "", (Ref("x"),), context=call if where.startswith("all") else ""), *backward)
    if where == "backward" or draw(st.booleans()):
        main = (Within(BACKWARD, main),)
    return Topology(
        module,
        (Input("x", shape, draw(st.sampled_from([True, True, False]))), *inputs),
        main,
        training=draw(st.booleans()),
        seed=draw(SEEDS),
    )


@st.composite
def of_graph(draw: Draw, graph: Graph) -> Topology:
    """A network that makes those choices: two Linears; if the second is a part, an activation comes after it."""
    shape = draw(shapes(2, 2))
    first = draw(linears(shape[-1]))
    between = output_shape(first, shape)
    after = [draw(st.sampled_from([Sigmoid(), Tanh()]))] if graph.where.endswith("part") else []
    chain: tuple[Module, ...] = (first, draw(linears(between[-1])), *after)
    caller = {"a part": graph.call, "all but a part": APART}.get(graph.where, "")
    outputs = {"h": (Ref("leaked", ("h",)), between), "y": (Ref("y"), output_shape(Sequential(chain), shape))}
    inputs, backward = draw(losses(tuple((name, *outputs[name]) for name in graph.losses)))
    topology = Topology(
        _in_a_graph(chain, caller, graph.inner, "h" in graph.losses),
        (Input("x", shape, graph.learns), *inputs),
        (Call("y", "", (Ref("x"),), context=graph.call if graph.where.startswith("all") else ""), *backward),
        training=draw(st.booleans()),
        seed=draw(SEEDS),
    )
    return within(topology, {CONTEXTS[name].wraps: (name,) for name in graph.outer}) if graph.outer else topology


def _in_a_graph(chain: tuple[Module, ...], caller: str, inner: str, leaks: bool) -> Composite:
    """The layers in a row, the first in the context ``inner``, the second called by ``caller``; what the first makes is
    handed out if it ``leaks``."""
    (first, second, *rest), last = body_of(chain)
    assert isinstance(first, Call)
    assert isinstance(second, Call)
    called = replace(first, context=inner if inner in context.OFFERED[CALLER] else "")
    around = context.in_grad_modes((inner,), called) if inner in context.OFFERED[STEPS] else (called,)
    leak = (Leak("h", Ref(first.out)),) if leaks else ()
    return Composite(named(chain), ("x",), (*around, *leak, replace(second, context=caller), *rest), Ref(last))


@st.composite
def of_classes(draw: Draw) -> Topology:
    """A network with a tensor of a class or layout, or with a sparse gradient (see `tensor_class`)."""
    name = draw(st.sampled_from([*(name for name, each in TENSORS.items() if each.flat), SPARSE_GRADIENT]))
    sparse = name == SPARSE_GRADIENT
    # Not of one dimension, for the same reason.
    topology = tensor_class.embedded(draw) if sparse else tensor_class.of_class(draw, name, TENSORS[name].flat)
    compiled = [in_way(topology, *way, backward) for way in WAYS for backward in (False, True)]
    return draw(st.sampled_from([t for t in compiled if not any(refused(t, name) for name in inside(t))]))


def in_way(topology: Topology, where: str, call: str, backward: bool) -> Topology:
    """The network, compiled so; ``backward`` too where that is said."""
    first, *rest = topology.main
    assert isinstance(first, Call)
    main = (replace(first, context=call if where.startswith("all") else ""), *rest)
    caller = {"a part": call, "all but a part": APART}.get(where, "")
    return replace(
        topology,
        module=_with_a_part(topology.module, caller) if caller else topology.module,
        main=(Within(BACKWARD, main),) if backward or where == "backward" else main,
    )


def by_either_backend(name: str) -> str:
    """What a context is taken for where it does not matter which backend compiles."""
    return name.replace("aot_eager", "eager").replace("module_compile_eager", "module_compile")


def pair(one: str, other: str) -> frozenset[str]:
    """Two contexts that meet, whatever the backend of what compiles."""
    return frozenset(map(by_either_backend, (one, other)))


def takes(topology: Topology, outer: context.Chosen) -> bool:
    """Whether the network may be in those contexts, of each place one: batched gradients are asked for with
    cotangents."""
    names = {name for names in outer.values() for name in names}
    refused = any(not names.isdisjoint(those) and not {*inside(topology)}.isdisjoint(o) for those, o, _ in NOT_AROUND)
    asked = ASKING not in outer or bool(getattr(_apart(topology)[1][-1], "cotangents", ()))
    fit = all(context.fits(topology.module, topology.inputs[:1], name) for name in names)
    return asked and fit and not refused and not context.apart(outer)


def within(topology: Topology, outer: context.Chosen) -> Topology:
    """The network in those contexts, of each place one. In a grad mode it is called once more, before the others and by
    itself: a thread has grad modes of its own."""
    call, rest, backward = _apart(topology)
    module = topology.module
    for caller in outer.get(CALLER, ()):
        if call.context:
            names = tuple(arg.name for arg in call.args if isinstance(arg, Ref))
            part = replace(call, out="h", target="part", args=tuple(map(Ref, names)))
            module = Composite((("part", module),), names, (part,), Ref("h"))
        call = replace(call, context=caller)
    for name in outer.get(ASKING, ()):
        leaves = [i.name for i in topology.inputs if i.requires_grad]
        leaves += [f"net.{path}" for path in parameter_shapes(replace(topology, module=module))]
        rest = (*rest[:-1], context.asking(rest[-1], leaves, name))
    main = context.around_all({**outer, CALLER: (call.context,)}, call, rest, BACKWARD if backward else "")
    for mode in outer.get(STEPS, ()):
        by_itself = replace(call, out="e", context="" if CALLER in outer else call.context)
        main = (*context.in_grad_modes((mode,), by_itself), *main)
    return replace(topology, module=module, main=main)


def _apart(topology: Topology) -> tuple[Call, tuple[Statement, ...], bool]:
    """The call, the rest of main, and whether they are within compiled autograd."""
    (first, *rest), main = topology.main, topology.main
    if isinstance(first, Within):
        main = first.body
        (first, *rest) = main
    assert isinstance(first, Call)
    assert isinstance(rest[-1], Backward)
    return first, tuple(rest), main is not topology.main


def _with_a_part(module: Module, caller: str) -> Module:
    """The module, in whose body that ``caller`` makes the first call."""
    assert isinstance(module, Composite)
    first = next(statement for statement in module.body if isinstance(statement, Call))
    part = replace(first, context=caller)
    return replace(module, body=tuple(part if statement is first else statement for statement in module.body))


def _module(draw: Draw, layers: tuple[Module, ...], caller: str) -> Module:
    """The layers in a row; the first of them is called by that ``caller``, if there is any."""
    if not caller:
        return layers[0] if len(layers) == 1 else Sequential(layers)
    body, last = body_of(layers)
    return Composite(named(layers), ("x",), (Call("h0", "m0", (Ref("x"),), context=caller), *body[1:]), Ref(last))
