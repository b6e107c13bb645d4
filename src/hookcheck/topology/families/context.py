"""context: a network runs inside of what must change nothing: what calls it, what is around it, how it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import strategies as st

from hookcheck.topology.contexts import ASKING, CALL, CALLER, COMPILING, CONTEXTS, MODES, RUN, STEPS, that_wrap
from hookcheck.topology.families.drawing import Draw
from hookcheck.topology.families.networks import Network, backed, networks, topology
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Apply, Call, Composite, Grad, Input, Module, Statement, Topology, Within, walk
from hookcheck.topology.ops.moving import Clone
from hookcheck.topology.tree import Ref

PLACES = (STEPS, CALLER, CALL, ASKING, RUN)
"""Where contexts go, from the inside out."""

INNER = "inner"
"""The place of a mode that is within another one."""

OFFERED = {place: tuple(name for name in that_wrap(place) if name not in COMPILING) for place in PLACES}
"""The contexts by place; those that compile are another family's."""


def _place(name: str) -> str:
    return CONTEXTS[name].wraps


TRANSFORMING = ("vmap", "dtensor", "dual_inputs")
"""The contexts that lack steps: which ones depends on the release, and they say so aloud."""

TRANSFORMED = {
    *("Composite", "Linear", "Sigmoid", "Tanh", "ReLU", "GELU", "Softmax", "Softplus", "Hardtanh", "Identity", "ELU"),
    *("Neg", "Scale", "Shift", "Add", "Sub", "Mul", "Sin", "Clone", "FunctionalReLU", "FunctionalTanh"),
}
"""The steps that those are given."""

APART = (
    ("is_grads_batched", ("dtensor",), "DTensors know no batched gradients"),
    ("is_grads_batched", ("fully_shard",), "it is asked for gradients of what main finds in the net, now DTensors"),
    ("detect_anomaly", ("is_grads_batched",), "it looks at the numbers of gradients, and batched ones have none"),
    ("detect_anomaly", ("dtensor",), "it looks for numbers that are none, which DTensors cannot tell"),
    ("module_tracker", ("is_grads_batched", "vjp"), "it has hooks on several tensors, which know no leaves there"),
    ("module_tracker", ("inference_mode",), "it has hooks on several tensors, which find no Node of a leaf there"),
    ("save_on_cpu", ("vjp",), "transforms refuse hooks on saved tensors aloud"),
    ("saved_tensors_hooks", ("vjp",), "transforms refuse hooks on saved tensors aloud"),
    ("dual_level", ("dual_inputs",), "there is one level at a time"),
    ("inference_mode", ("vjp",), "tensors of an inference mode have no version, which transforms set"),
    ("no_grad", ("vjp",), "transforms give zeros for what nothing depends on, where autograd gives nothing"),
)
"""Contexts that are left out beside others, which they refuse or are refused by; each with the reason."""


@st.composite
def topologies(draw: Draw) -> Topology:
    """A network of float64 in one to four contexts of different places; those that do not fit it are left out. A mode
    may have another one in it, of its own class or not.

    None of float32: what autocast casts, and the float32 copies that it keeps, torch's documentation lists by operation
    and changes from release to release, and the oracle knows no dtype but by promotion.
    """
    net = draw(networks())
    fitting = [(place, name) for place, names in OFFERED.items() for name in names if fits(net, name)]
    drawn = draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=4, unique_by=lambda each: each[0]))
    chosen = dict(drawn)
    for left_out, others, _ in APART:
        if chosen.get(_place(left_out)) == left_out and not set(others).isdisjoint(chosen.values()):
            del chosen[_place(left_out)]
    if chosen.get(RUN) in MODES and draw(st.booleans()):
        chosen[INNER] = draw(st.sampled_from(MODES))
    return placed(draw, net, chosen)


def placed(draw: Draw, net: Network, chosen: Mapping[str, str]) -> Topology:
    """The network in the contexts that are chosen, one for each place."""
    if STEPS in chosen:
        net = behind(net, chosen[STEPS])
    inputs, passes = asked(net, chosen[ASKING]) if ASKING in chosen else backed(draw, net.named("y"))
    call: Statement = replace(net.call(), through=chosen.get(CALLER, ""))
    run = (*_around(chosen.get(CALL), call), *passes)
    main = _around(chosen.get(RUN), *_around(chosen.get(INNER), *run))
    return topology(draw, net.module, (*net.arguments, *inputs), main, dtype="float64")


def behind(net: Network, mode: str) -> Network:
    """The network, on what a Linear in that grad mode makes of the first argument; ``enable_grad`` is within a
    ``no_grad``. What comes of an inference mode is copied, since autograd saves no tensor of such."""
    first = net.arguments[0]
    names = tuple(i.name for i in net.arguments)
    part = Linear(first.shape[-1], first.shape[-1])
    run: Statement = Within(mode, (Call("h0", "part", (Ref(names[0]),)),))
    body = (
        Within("no_grad", (run,)) if mode == "enable_grad" else run,
        Apply("h1", Clone(), (Ref("h0"),)),
        Call("h2", "rest", tuple(map(Ref, ("h1", *names[1:])))),
    )
    return replace(net, module=Composite((("part", part), ("rest", net.module)), names, body, Ref("h2")))


def fits(net: Network, name: str) -> bool:
    """Whether a network may run in the context of that name.

    What RReLU saves has not been filled yet (pytorch#193671): what a checkpoint finds of it, or a copy, is any numbers.
    """
    modules = {type(module).__name__ for _, module in walk(net.module)}
    if name in ("checkpoint", "saved_tensors_hooks"):
        return "RReLU" not in modules
    if name == "dtensor" and any(len(i.shape) < 2 for i in net.arguments):
        return False  # what a Linear makes of one dimension is squeezed in place, in which a wrapper has no part
    return name not in TRANSFORMING or modules | operations(net.module) <= TRANSFORMED


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
