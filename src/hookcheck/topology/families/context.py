"""context: a network runs inside of what must change nothing: what calls it, what is around it, how it is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from hypothesis import strategies as st

from hookcheck.topology.contexts import ASKING, CALL, CALLER, COMPILING, CONTEXTS, MODES, RUN, STEPS, that_wrap
from hookcheck.topology.families import tensor_class
from hookcheck.topology.families.drawing import Draw
from hookcheck.topology.families.networks import Network, backed, networks, topology
from hookcheck.topology.families.tensors_in_contexts import refused
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import (
    Apply,
    Backward,
    Call,
    Composite,
    Grad,
    Input,
    Module,
    Statement,
    Topology,
    Within,
    tensor_classes,
    walk,
)
from hookcheck.topology.ops.moving import Clone
from hookcheck.topology.tensors import TENSORS
from hookcheck.topology.tree import Ref
from hookcheck.topology.values import parameter_shapes

PLACES = (STEPS, CALLER, CALL, ASKING, RUN)
"""Where contexts go, from the inside out."""

INNER = "inner"
"""The place of a mode that is within another one."""

OFFERED = {place: tuple(name for name in that_wrap(place) if name not in COMPILING) for place in PLACES}
"""The contexts by place; those that compile are another family's."""

EACH = [(place, name) for place, names in OFFERED.items() for name in names]
"""Each of them with its place."""


def _place(name: str) -> str:
    return CONTEXTS[name].wraps


TRANSFORMING = ("vmap", "dtensor", "dual_inputs")
"""The contexts that lack steps: which ones depends on the release, and they say so aloud."""

TRANSFORMED = {
    *("Composite", "Linear", "Embedding", "Sigmoid", "Tanh", "ReLU", "GELU", "Softmax", "Softplus", "Hardtanh"),
    *("Identity", "ELU"),
    *(
        "AsTensor",
        "AsDense",
        "Neg",
        "Scale",
        "Shift",
        "Add",
        "Sub",
        "Mul",
        "Sin",
        "Clone",
        "FunctionalReLU",
        "FunctionalTanh",
    ),
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
    """A network in one to four contexts of different places; those that do not fit it are left out. A mode may have
    another one in it, of its own class or not.

    It is of float64, but for tensors of a class that is of another dtype: what autocast casts, and the float32 copies
    that it keeps, torch's documentation lists by operation and changes from release to release, and the oracle knows no
    dtype but by promotion.
    """
    if draw(st.sampled_from([False, False, True])):
        return draw(of_classes())
    net = draw(networks())
    return placed(draw, net, _chosen(draw, [(p, name) for p, name in EACH if fits(net.module, net.arguments, name)]))


@st.composite
def of_classes(draw: Draw) -> Topology:
    """A network with tensors of a class or layout (see `tensor_class`) in such contexts."""
    topology = draw(tensor_class.topologies())
    return in_contexts(topology, _chosen(draw, [(p, name) for p, name in EACH if p != STEPS and takes(topology, name)]))


def in_contexts(topology: Topology, chosen: Mapping[str, str]) -> Topology:
    """A network with tensors of classes in the contexts that are chosen, one for each place."""
    if not any(TENSORS[name].dtype for name in tensor_classes(topology)):
        topology = replace(topology, dtype="float64")
    (call, *rest), asking = topology.main, chosen.get(ASKING)
    assert isinstance(call, Call)
    if asking:
        leaves = [i.name for i in topology.inputs if i.requires_grad]
        leaves += [f"net.{path}" for path in parameter_shapes(topology)]
        rest[-1] = _asked(rest[-1], leaves, asking)
    call = replace(call, through=chosen.get(CALLER, ""))
    return replace(topology, main=_around_all(chosen, call, rest))


def takes(topology: Topology, name: str) -> bool:
    """Whether a network with tensors of classes may run in the context of that name: batched gradients are asked for
    with cotangents."""
    if CONTEXTS[name].wraps == ASKING and not getattr(topology.main[-1], "cotangents", ()):
        return False
    return fits(topology.module, topology.inputs[:1], name) and not refused(topology, name)


def _chosen(draw: Draw, fitting: list[tuple[str, str]]) -> dict[str, str]:
    """Up to four of the contexts that fit a network, by place; those aside that others refuse."""
    chosen = dict(draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=4, unique_by=lambda each: each[0])))
    for left_out, others, _ in APART:
        if chosen.get(_place(left_out)) == left_out and not set(others).isdisjoint(chosen.values()):
            del chosen[_place(left_out)]
    if chosen.get(RUN) in MODES and draw(st.booleans()):
        chosen[INNER] = draw(st.sampled_from(MODES))
    return chosen


def placed(draw: Draw, net: Network, chosen: Mapping[str, str]) -> Topology:
    """The network in the contexts that are chosen, one for each place."""
    if STEPS in chosen:
        net = behind(net, chosen[STEPS])
    inputs, passes = asked(net, chosen[ASKING]) if ASKING in chosen else backed(draw, net.named("y"))
    call: Statement = replace(net.call(), through=chosen.get(CALLER, ""))
    return topology(draw, net.module, (*net.arguments, *inputs), _around_all(chosen, call, passes), dtype="float64")


def _around_all(chosen: Mapping[str, str], call: Statement, rest: Iterable[Statement]) -> tuple[Statement, ...]:
    """The call and the rest of main, in what is chosen of what is around the one or both."""
    run = (*_around(chosen.get(CALL), call), *rest)
    return _around(chosen.get(RUN), *_around(chosen.get(INNER), *run))


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


def fits(root: Module, arguments: tuple[Input, ...], name: str) -> bool:
    """Whether a network that is called with these may run in the context of that name.

    What RReLU saves has not been filled yet (pytorch#193671): what a checkpoint finds of it, or a copy, is any numbers.
    """
    modules = {type(module).__name__ for _, module in walk(root)}
    if name in ("checkpoint", "saved_tensors_hooks"):
        return "RReLU" not in modules
    if name == "dtensor" and any(len(i.shape) < 2 for i in arguments):
        return False  # what a Linear makes of one dimension is squeezed in place, in which a wrapper has no part
    return name not in TRANSFORMING or modules | operations(root) <= TRANSFORMED


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
    return cotangents, (_asked(Backward(outputs, given), leaves, name),)


def _asked(backward: Statement, leaves: list[str], name: str) -> Grad:
    """The gradients of those leaves, asked for by the context of that name in the place of a backward."""
    assert isinstance(backward, Backward)
    return Grad("g", backward.outputs, tuple(map(Ref, leaves)), backward.cotangents, through=name)


def _around(name: str | None, *statements: Statement) -> tuple[Statement, ...]:
    """The statements, in the context of that name if there is any."""
    return (Within(name, statements),) if name else statements
