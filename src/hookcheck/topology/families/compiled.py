"""compiled: torch.compile is at work on a network, on a part of it, on all but a part, on backward, or was before."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from hookcheck.topology.contexts import CALLER, COMPILING, CONTEXTS
from hookcheck.topology.families import tensor_class
from hookcheck.topology.families.drawing import SEEDS, Draw, body_of, linears, losses, named, output_shape, shapes
from hookcheck.topology.families.tensors_in_contexts import refused
from hookcheck.topology.layers.activation import Sigmoid, Tanh
from hookcheck.topology.model import Call, Composite, Input, Module, Sequential, Topology, Within, inside
from hookcheck.topology.tensors import SPARSE_GRADIENT, TENSORS
from hookcheck.topology.tree import Ref

APART, BACKWARD = "compiler_disable", "compiled_autograd"
CALLS = tuple(name for name in COMPILING if CONTEXTS[name].wraps == CALLER and name != APART)
"""The ways to call a module in which torch.compile is at work."""

MODULES = ("compile_module_eager", "compile_module_aot_eager")
"""Those that make another module of it; it is called from outside of the network, as programs call it."""

WHERE = ("all", "a part", "all but a part", "backward")
"""What is compiled, or called by what has compiled before."""

WAYS = tuple((where, call) for where in WHERE for call in CALLS if where.startswith("all") or call not in MODULES)
"""Each of those with the calls by which it may be; backward takes none."""


@st.composite
def topologies(draw: Draw) -> Topology:
    """A small network, since compiling is slow, some of which is called so; some have tensors of a class or layout."""
    return draw(of_classes() if draw(st.sampled_from([False, False, True])) else of_layers())


@st.composite
def of_layers(draw: Draw) -> Topology:
    """A Linear alone or with an activation."""
    shape = draw(shapes(2, 2))  # of one dimension a Linear gives a view, and a compiled function a tensor of its own
    layers: tuple[Module, ...] = (draw(linears(shape[-1])), *draw(st.sampled_from([(), (), (Sigmoid(),), (Tanh(),)])))
    where, call = draw(st.sampled_from(WAYS))
    module = _module(draw, layers, {"a part": call, "all but a part": APART}.get(where, ""))
    inputs, backward = draw(losses((("y", Ref("y"), output_shape(Sequential(layers), shape)),)))
    main = (Call("y", "", (Ref("x"),), through=call if where.startswith("all") else ""), *backward)
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
def of_classes(draw: Draw) -> Topology:
    """A network with a tensor of a class or layout, or with a sparse gradient (see `tensor_class`)."""
    name = draw(st.sampled_from([*(name for name, each in TENSORS.items() if 2 in each.ranks), SPARSE_GRADIENT]))
    sparse = name == SPARSE_GRADIENT
    # Two dimensions, for the same reason.
    topology = tensor_class.embedded(draw) if sparse else tensor_class.of_class(draw, name, (2,))
    compiled = [in_way(topology, *way, backward) for way in WAYS for backward in (False, True)]
    return draw(st.sampled_from([t for t in compiled if not any(refused(t, name) for name in inside(t))]))


def in_way(topology: Topology, where: str, call: str, backward: bool) -> Topology:
    """The network, compiled so; ``backward`` too where that is said."""
    first, *rest = topology.main
    assert isinstance(first, Call)
    main = (replace(first, through=call if where.startswith("all") else ""), *rest)
    caller = {"a part": call, "all but a part": APART}.get(where, "")
    return replace(
        topology,
        module=_with_a_part(topology.module, caller) if caller else topology.module,
        main=(Within(BACKWARD, main),) if backward or where == "backward" else main,
    )


def _with_a_part(module: Module, caller: str) -> Module:
    """The module, in whose body that ``caller`` makes the first call."""
    assert isinstance(module, Composite)
    first = next(statement for statement in module.body if isinstance(statement, Call))
    part = replace(first, through=caller)
    return replace(module, body=tuple(part if statement is first else statement for statement in module.body))


def _module(draw: Draw, layers: tuple[Module, ...], caller: str) -> Module:
    """The layers in a row; the first of them is called by that ``caller``, if there is any."""
    if not caller:
        return layers[0] if len(layers) == 1 else Sequential(layers)
    body, last = body_of(layers)
    return Composite(named(layers), ("x",), (Call("h0", "m0", (Ref("x"),), through=caller), *body[1:]), Ref(last))
