"""compiled: torch.compile is at work on a network, on a part of it, on all but a part, on backward, or was before."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.contexts import CALLER, COMPILING, CONTEXTS
from hookcheck.topology.families.drawing import SEEDS, Draw, body_of, linears, losses, named, output_shape, shapes
from hookcheck.topology.layers.activation import Sigmoid, Tanh
from hookcheck.topology.model import Call, Composite, Input, Module, Sequential, Topology, Within
from hookcheck.topology.tree import Ref

APART, BACKWARD = "compiler_disable", "compiled_autograd"
CALLS = tuple(name for name in COMPILING if CONTEXTS[name].wraps == CALLER and name != APART)
"""The ways to call a module in which torch.compile is at work."""

MODULES = ("compile_module_eager", "compile_module_aot_eager")
"""Those that make another module of it; it is called from outside of the network, as programs call it."""

WHERE = ("all", "a part", "all but a part", "backward")
"""What is compiled, or called by what has compiled before."""


@st.composite
def topologies(draw: Draw) -> Topology:
    """A Linear alone or with an activation, some of which is called so; it is small, since compiling is slow."""
    shape = draw(shapes(2, 2))  # of one dimension a Linear gives a view, and a compiled function a tensor of its own
    layers: tuple[Module, ...] = (draw(linears(shape[-1])), *draw(st.sampled_from([(), (), (Sigmoid(),), (Tanh(),)])))
    where = draw(st.sampled_from(WHERE))
    call = draw(st.sampled_from([name for name in CALLS if where.startswith("all") or name not in MODULES]))
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


def _module(draw: Draw, layers: tuple[Module, ...], caller: str) -> Module:
    """The layers in a row; the first of them is called by that ``caller``, if there is any."""
    if not caller:
        return layers[0] if len(layers) == 1 else Sequential(layers)
    body, last = body_of(layers)
    return Composite(named(layers), ("x",), (Call("h0", "m0", (Ref("x"),), through=caller), *body[1:]), Ref(last))
