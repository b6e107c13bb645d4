"""context: a network runs inside of what must change nothing: what calls it, what is around it, how it is asked."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from hookcheck.topology.contexts import ASKING, CALL, CALLER, COMPILING, RUN, that_wrap
from hookcheck.topology.families.drawing import Draw
from hookcheck.topology.families.networks import Network, backed, networks, topology
from hookcheck.topology.model import Apply, Composite, Grad, Input, Module, Statement, Topology, Within, walk
from hookcheck.topology.tree import Ref

PLACES = (CALLER, CALL, ASKING, RUN)
"""Where contexts go, from the inside out."""

OFFERED = {place: tuple(name for name in that_wrap(place) if name not in COMPILING) for place in PLACES}
"""The contexts by place; those that compile are another family's."""

BATCHED = {
    *("Composite", "Linear", "Sigmoid", "Tanh", "ReLU", "GELU", "Softmax", "Softplus", "Hardtanh", "Identity", "ELU"),
    *("Neg", "Scale", "Shift", "Add", "Sub", "Mul", "Sin", "Clone", "FunctionalReLU", "FunctionalTanh"),
}
"""The steps that vmap is given. It lacks others, which ones depends on the release, and says so aloud."""

REFUSING = ("detect_anomaly", "module_tracker")
"""The contexts that refuse batched gradients: one looks at their numbers, the other has hooks on several tensors, which
know no leaves there."""


@st.composite
def topologies(draw: Draw) -> Topology:
    """A network of float64 in one to three contexts of different places; those that do not fit it are left out.

    None of float32: what autocast casts, and the float32 copies that it keeps, torch's documentation lists by operation
    and changes from release to release, and the oracle knows no dtype but by promotion.
    """
    net = draw(networks())
    fitting = [(place, name) for place, names in OFFERED.items() for name in names if fits(net, name)]
    drawn = draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=3, unique_by=lambda each: each[0]))
    chosen = dict(drawn)
    if ASKING in chosen and chosen.get(RUN) in REFUSING:
        del chosen[RUN]
    inputs, passes = asked(net, chosen[ASKING]) if ASKING in chosen else backed(draw, net.named("y"))
    call: Statement = replace(net.call(), through=chosen.get(CALLER, ""))
    main = _around(chosen.get(RUN), *_around(chosen.get(CALL), call), *passes)
    return topology(draw, net.module, (*net.arguments, *inputs), main, dtype="float64")


def fits(net: Network, name: str) -> bool:
    """Whether a network may run in the context of that name.

    What RReLU saves has not been filled yet (pytorch#193671): what a checkpoint finds of it, or a copy, is any numbers.
    """
    modules = {type(module).__name__ for _, module in walk(net.module)}
    if name in ("checkpoint", "saved_tensors_hooks"):
        return "RReLU" not in modules
    return name != "vmap" or modules | operations(net.module) <= BATCHED


def operations(module: Module) -> set[str]:
    """The operations in the bodies of a module and of those in it."""
    bodies = (each.body for _, each in walk(module) if isinstance(each, Composite))
    return {type(s.op).__name__ for body in bodies for s in body if isinstance(s, Apply)}


def asked(net: Network, name: str) -> tuple[tuple[Input, ...], tuple[Statement, ...]]:
    """The gradients of all leaves asked for by the context of that name, with a cotangent for each output."""
    named = net.named("y")
    cotangents = tuple(Input(f"v_{label}", value.shape) for label, value in named)
    leaves = [i.name for i in net.arguments if i.requires_grad] + [f"net.{path}" for path in net.parameters]
    outputs, given = (tuple(refs) for refs in ((v.ref for _, v in named), (Ref(c.name) for c in cotangents)))
    return cotangents, (Grad("g", outputs, tuple(map(Ref, leaves)), given, through=name),)


def _around(name: str | None, *statements: Statement) -> tuple[Statement, ...]:
    """The statements, in the context of that name if there is any."""
    return (Within(name, statements),) if name else statements
