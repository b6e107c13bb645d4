"""context: a network runs inside of what must change nothing: what calls it, what is around it, how it is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from hypothesis import strategies as st

from hookcheck.topology.contexts import ASKING, CALL, CALLER, COMPILING, CONTEXTS, RUN, STEPS, that_wrap
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
from hookcheck.topology.tree import Pack, Ref
from hookcheck.topology.values import parameter_shapes

PLACES = (STEPS, CALLER, CALL, ASKING, RUN)
"""Where contexts go, from the inside out."""

Chosen = Mapping[str, tuple[str, ...]]
"""The contexts that are chosen, by place: of each one, or two of which the second is within the first."""

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
    ("is_grads_batched", ("is_grads_batched",), "gradients are asked for once"),
    ("is_grads_batched", ("dtensor",), "DTensors know no batched gradients"),
    ("is_grads_batched", ("fully_shard",), "it is asked for gradients of what main finds in the net, now DTensors"),
    ("detect_anomaly", ("is_grads_batched",), "it looks at the numbers of gradients, and batched ones have none"),
    ("detect_anomaly", ("dtensor",), "it looks for numbers that are none, which DTensors cannot tell"),
    ("module_tracker", ("is_grads_batched", "vjp"), "it has hooks on several tensors, which know no leaves there"),
    ("module_tracker", ("inference_mode",), "it has hooks on several tensors, which find no Node of a leaf there"),
    ("save_on_cpu", ("vjp",), "transforms refuse hooks on saved tensors aloud"),
    ("saved_tensors_hooks", ("vjp",), "transforms refuse hooks on saved tensors aloud"),
    ("dual_level", ("dual_level", "dual_inputs"), "there is one level at a time"),
    ("inference_mode", ("vjp",), "tensors of an inference mode have no version, which transforms set"),
    ("no_grad", ("vjp",), "transforms give zeros for what nothing depends on, where autograd gives nothing"),
)
"""Contexts that are left out beside others, which they refuse or are refused by; each with the reason."""

NOT_WITHIN: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (("inference_mode",), ("enable_grad",), "what an inference mode makes has no gradient in any mode"),
    (("checkpoint",), ("fully_shard",), "what backward runs again would be sharded once more, which FSDP2 refuses"),
    (("checkpoint",), ("vjp",), "transforms refuse the hooks on saved tensors of a checkpoint"),
    (("vmap", "vjp"), ("checkpoint",), "transforms refuse the hooks on saved tensors of a checkpoint"),
    (("dtensor",), ("checkpoint",), "what backward runs again has the parameters of the module, which are no DTensors"),
    (("dual_inputs",), ("checkpoint",), "what backward runs again has no tangents"),
    (("vmap", "vjp"), ("thread",), "a transform is at work in one thread"),
    (("fully_shard",), ("thread",), "FSDP2 loses gradients of what another thread computes, without hooks as well"),
    (("vmap", "vjp"), ("fully_shard",), "FSDP2 has its parameters require gradients, which transforms refuse"),
    (("dual_inputs",), ("fully_shard",), "FSDP2 goes backward by an autograd.Function, which says nothing of tangents"),
    (("vmap", "vjp", "dual_inputs"), ("dtensor", "vjp"), "an autograd.Function is in them, unaware of transforms"),
    (("dtensor",), ("vmap",), "up to 2.9 DTensors lack what makes a batch of one"),
    (("dtensor",), ("dual_inputs",), "DTensors lack what makes a tangent"),
    (("dual_inputs",), ("dual_inputs",), "there is one level at a time"),
    (("dtensor",), ("dtensor",), "a DTensor holds plain tensors alone"),
    (("dtensor", "vjp"), ("ddp",), "DDP sends parameters to other processes, which these cannot stand for"),
    (("dtensor",), ("fully_shard",), "FSDP2 refuses parameters that another mesh has already"),
    (("vmap",), ("dual_inputs",), "there is no rule for what makes a tangent"),
    (("replica",), ("ddp", "dtensor", "vjp"), "a replica has no parameters, which they put others in the place of"),
)
"""Contexts in which others of their place are not drawn, those, and the reason: torch refuses the network without any
hook, or the two have no meaning together. Where neither is drawn in the other both orders stand here."""


@st.composite
def topologies(draw: Draw) -> Topology:
    """A network in one to four contexts of different places; those that do not fit it are left out. One of them may
    have another one of its place in it, or itself.

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
    chosen = _chosen(draw, [(p, name) for p, name in EACH if p != STEPS and takes(topology, name)])
    return in_contexts(topology, {place: names[:1] if place == CALLER else names for place, names in chosen.items()})


def in_contexts(topology: Topology, chosen: Chosen) -> Topology:
    """A network with tensors of classes in the contexts that are chosen, of which one at most is a caller."""
    if not any(TENSORS[name].dtype for name in tensor_classes(topology)):
        topology = replace(topology, dtype="float64")
    call, *rest = topology.main
    assert isinstance(call, Call)
    for name in chosen.get(ASKING, ()):
        leaves = [i.name for i in topology.inputs if i.requires_grad]
        leaves += [f"net.{path}" for path in parameter_shapes(topology) if path not in topology.frozen]
        rest[-1] = asking(rest[-1], leaves, name)
    return replace(topology, main=around_all(chosen, call, rest))


def takes(topology: Topology, name: str) -> bool:
    """Whether the network may run in the context of that name: batched gradients are asked for with cotangents, DDP has
    parameters to send, FSDP2 is asked for no gradients of what main finds in the net, since they are DTensors then,
    and a checkpoint saves its inputs even where there is nothing to compute."""
    asks = any(isinstance(each, Grad) or getattr(each, "inputs", ()) for each in topology.main)
    lacking = {
        "is_grads_batched": not getattr(topology.main[-1], "cotangents", ()),
        "ddp": {*parameter_shapes(topology)} <= {*topology.frozen},
        "fully_shard": asks,
        "checkpoint": isinstance(topology.module, Composite) and not topology.module.body,
    }
    return not lacking.get(name) and fits(topology.module, topology.inputs[:1], name) and not refused(topology, name)


def _chosen(draw: Draw, fitting: list[tuple[str, str]]) -> Chosen:
    """Up to four of the contexts that fit a network, of different places, and perhaps one more of a place that has one;
    those aside that others refuse."""
    several = draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=4, unique_by=lambda each: each[0]))
    if draw(st.booleans()):
        again = draw(st.sampled_from([place for place, _ in several]))
        several.append((again, draw(st.sampled_from([name for place, name in fitting if place == again]))))
    chosen: dict[str, tuple[str, ...]] = {}
    for place, name in several:
        wider = {**chosen, place: (*chosen.get(place, ()), name)}
        if not apart(wider):
            chosen = wider
    return chosen


def apart(chosen: Chosen) -> bool:
    """Whether any two of those contexts are left out beside each other, or the one within the other."""
    names = [name for place in chosen.values() for name in place]
    rest = {one: {*names[:at], *names[at + 1 :]} for at, one in enumerate(names)}
    beside = any(one in rest and not rest[one].isdisjoint(others) for one, others, _ in APART)
    nested = [names for names in chosen.values() if len(names) > 1]
    return beside or any(names[0] in outer and names[1] in inner for names in nested for outer, inner, _ in NOT_WITHIN)


def placed(draw: Draw, net: Network, chosen: Chosen) -> Topology:
    """The network in the contexts that are chosen."""
    if CALLER in chosen and len(chosen[CALLER]) > 1:
        net = called_within(net, chosen[CALLER][1])
    if STEPS in chosen:
        net = behind(net, *chosen[STEPS])
    inputs, passes = asked(net, *chosen[ASKING]) if ASKING in chosen else backed(draw, net.named("y"))
    main = around_all(chosen, net.call(), passes)
    return topology(draw, net.module, (*net.arguments, *inputs), main, dtype="float64")


def around_all(chosen: Chosen, call: Call, rest: Iterable[Statement], inner: str = "") -> tuple[Statement, ...]:
    """The call, made by the outer caller, and the rest of main, in what is chosen of what is around the one or both;
    all of them in ``inner`` first, if it names a context."""
    call = replace(call, context=next(iter(chosen.get(CALLER, ())), ""))
    both = (*chosen.get(RUN, ()), *[inner] * bool(inner))
    return _around(both, *_around(chosen.get(CALL, ()), call), *rest)


def called_within(net: Network, caller: str) -> Network:
    """The network as a part of a module, which calls it by that caller, and gives copies of what comes of it: what a
    transform makes its outputs by is its own affair, and a legacy hook is on the last Node."""
    names = tuple(i.name for i in net.arguments)
    call = Call("h", "part", tuple(map(Ref, names)), context=caller)
    copies = tuple(Apply(f"h{i}", Clone(), (replace(v.ref, name="h"),)) for i, v in enumerate(net.outputs))
    refs = tuple(Ref(each.out) for each in copies)
    gives = Pack("tuple", refs) if net.outputs[0].ref.path else refs[0]
    return replace(net, module=Composite((("part", net.module),), names, (call, *copies), gives))


def in_grad_modes(modes: tuple[str, ...], call: Call) -> tuple[Statement, ...]:
    """The call in those grad modes, the outer one first; ``enable_grad`` by itself is within a ``no_grad``."""
    return _around(("no_grad", *modes) if modes == ("enable_grad",) else modes, call)


def behind(net: Network, *modes: str) -> Network:
    """The network, on what a Linear in those grad modes makes of the first argument. What comes of an inference mode is
    copied, since autograd saves no tensor of such."""
    first = net.arguments[0]
    names = tuple(i.name for i in net.arguments)
    part = Linear(first.shape[-1], first.shape[-1])
    body = (
        *in_grad_modes(modes, Call("h0", "part", (Ref(names[0]),))),
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
    if name == "dtensor" and any(len(i.shape) == 1 for i in arguments):
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
    return cotangents, (asking(Backward(outputs, given), leaves, name),)


def asking(backward: Statement, leaves: list[str], name: str) -> Grad:
    """The gradients of those leaves, asked for by the context of that name in the place of a backward."""
    assert isinstance(backward, Backward)
    return Grad("g", backward.outputs, tuple(map(Ref, leaves)), backward.cotangents, context=name)


def _around(names: Iterable[str], *statements: Statement) -> tuple[Statement, ...]:
    """The statements in the contexts of those names, the outer one first."""
    for name in reversed([*names]):
        statements = (Within(name, statements),)
    return statements
