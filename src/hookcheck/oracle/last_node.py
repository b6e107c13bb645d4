"""Which gradients does the last Node of a step hand on in one backward pass, where a legacy hook is given them?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hookcheck.oracle.dtypes import REAL
from hookcheck.oracle.gradient import Gradient
from hookcheck.oracle.graph import CallTrace, Node, Pass, Tensor, Trace, origin
from hookcheck.oracle.memory import Pasted, Taken
from hookcheck.oracle.sweep import Sweep, handed_on, materialized
from hookcheck.topology.last_node import Form, NodeGradient, Release, Step
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.ops.arithmetic import Maximum
from hookcheck.topology.ops.moving import To
from hookcheck.topology.ops.tensors import AsTensor
from hookcheck.topology.primitive import Shape, SingleStep

Forms = tuple[tuple[Gradient, ...], ...]
"""What a hook may be given as ``grad_input``, one for each form that the Node may have; empty where it is not known."""

ALL_ROOTS: Release = (1, 8)
"""This one may run the Node that a pass begins at, whatever it was asked for (``init_to_execute`` in engine.cpp); up to
it, others may run where a pass is asked for what it cannot come to (pytorch#51940)."""

TRIMMED: Release = (1, 13)
"""Since then a Node works out no gradient that leads to nothing which a pass was asked for (pytorch#82544)."""

SHARED: Release = (1, 10)
"""Since then two equal numbers share the gradient of the larger or smaller one; up to it the second got all of it
(pytorch#56734)."""


@dataclass(frozen=True, eq=False)
class NodeCall:
    """One call that is due of a hook on the Node that made the first output tensor of a module's ``call``.

    In pass ``backward`` that tensor has ``gradient``, all uses of it counted, those that bypass the module's outputs
    included; it is None where only other outputs of the step have one, and where it is not known. ``forms`` are what
    the Node may hand on; none where that is not known. A pass through a pass before it follows saved tensors, and which
    Nodes run in it is torch's own affair: what is due in one is not ``certain``.

    ``grad_output`` has one entry for each of the Node's ``outputs``, of which this tensor is number ``slot``; its
    ``dtype`` is the gradient's, and every entry of ``grad_input`` has one of the ``dtypes``. ``absent`` says that the
    tensor is known to have no gradient in that pass, where others of the Node's outputs have one.
    """

    call: CallTrace
    backward: int
    gradient: Gradient
    forms: Forms
    certain: bool = True
    slot: int = 0
    outputs: int = 1
    dtype: str = "float64"
    dtypes: frozenset[str] = frozenset({"float64"})
    absent: bool = False

    @property
    def known(self) -> bool:
        """Whether it is known what the hook is called with."""
        return (self.absent or self.gradient is not None) and bool(self.forms)


def node_calls(trace: Trace, sweeps: Sequence[Sweep], release: Release) -> Iterator[NodeCall]:
    """The calls that are due, pass by pass, on a torch of that release; ``sweeps`` are those without boundaries."""
    known = release >= SHARED or not ties(trace)
    for number, whole in enumerate(sweeps):
        for call in trace.calls:
            source = None if call.first is None else maker(call.first)
            if source is None or source.node is None or not source.requires_grad:
                continue
            assert call.first is not None
            swept = past_writes(trace, number, call.first, whole, release)
            if swept is None:
                yield NodeCall(call, number, None, (), certain=False)
                continue
            if not _runs(source, swept):
                if _may_run(source, trace.passes[number], swept, release):
                    yield NodeCall(call, number, None, (), certain=False)
                continue
            gradient, forms = at_its_node(source, swept), _handed_on(source, swept, release) if known else ()
            outputs = source.node.primitive.width(len(source.node.shapes), release) if source.node.primitive else 1
            yield NodeCall(
                call,
                number,
                gradient,
                forms,
                certain=not trace.passes[number].second,
                slot=source.slot if outputs > 1 else 0,
                outputs=outputs,
                dtype=source.dtype,
                dtypes=_dtypes(source, source.node),
                absent=gradient is None and outputs > 1 and not isinstance(source.node.primitive, SingleStep),
            )


def ties(trace: Trace) -> bool:
    """Whether the larger or smaller of two equal numbers is taken anywhere."""
    compared = (node.inputs for node in trace.nodes if isinstance(node.primitive, Maximum))
    return any(np.any(left.array == right.array) for left, right in compared)


def aliased(due: Iterable[NodeCall]) -> tuple[NodeCall, ...]:
    """``due`` of a network with a class that wraps what functions give.

    It does so by an alias of that: one more Node, which hands on the gradient that it gets (``_convert`` in
    torch/_tensor.py, and ``alias`` in derivatives.yaml).
    """
    return tuple(replace(c, forms=((c.gradient,),)) if _is_alias(c.call.first) else c for c in due)


def transformed(due: Iterable[NodeCall]) -> tuple[NodeCall, ...]:
    """``due`` of a network that is given wrappers of tensors (`hookcheck.topology.contexts.WRAPPING`): where these are
    not rows, Linear makes other Nodes of them, by release (``isTensorSubclassLike`` in Linear.cpp)."""
    return tuple(replace(c, forms=()) if _is_linear_of_no_rows(c.call.first) else c for c in due)


def _is_linear_of_no_rows(tensor: Tensor | None) -> bool:
    node = None if tensor is None else maker(tensor).node
    return node is not None and isinstance(node.primitive, Linear) and node.inputs[0].array.ndim != 2


def _is_alias(tensor: Tensor | None) -> bool:
    """Whether a function gave ``tensor`` that was given one of a class which wraps that; what makes one of such a class
    itself is no such function."""
    node = None if tensor is None else maker(tensor).node
    return node is not None and not isinstance(node.primitive, AsTensor) and any(map(_wraps, node.inputs))


def _wraps(tensor: Tensor) -> bool:
    """Whether it, or what it was made of, is of such a class."""
    source = maker(tensor)
    return source.wraps or (source.node is not None and any(map(_wraps, source.node.inputs)))


def maker(tensor: Tensor) -> Tensor:
    """``tensor`` as the step gave it whose Node it has: a cast to the dtype that is there gives the tensor itself."""
    source = origin(tensor)
    while source.node is not None and isinstance(source.node.primitive, To):
        given = source.node.inputs[0]
        if source.node.primitive.dtype != given.dtype:
            break
        source = origin(given)
    return source


def _dtypes(output: Tensor, node: Node) -> frozenset[str]:
    """Those that a step's Nodes work in: of what goes in and comes out, or of the parts of a complex tensor."""
    dtypes = {output.dtype, *(operand.dtype for operand in node.inputs)}
    return frozenset(dtypes | {REAL[dtype] for dtype in dtypes if dtype in REAL})


def at_its_node(tensor: Tensor, swept: Sweep) -> Gradient:
    """The gradient of what a step gave, as that step receives it; None where it has none, or it is not known."""
    node = tensor.node
    assert node is not None
    received, primitive = swept.received[node.index], node.primitive
    chained = isinstance(primitive, SingleStep) and not primitive.separate and not node.opaque
    if primitive is None or not chained or all(gradient is None for gradient in received[: tensor.slot]):
        return received[tensor.slot]
    count = len(node.inputs) - len(node.parameters)
    arrays = tuple(operand.array for operand in node.inputs)
    parameters = {**dict(zip(node.parameters, arrays[count:])), **node.buffers}
    return primitive.whole(arrays[:count], parameters, materialized(node, received), tensor.slot)


def _runs(tensor: Tensor, swept: Sweep) -> bool:
    """Whether the Node that made ``tensor`` runs: that of a layer's output, for it or for outputs made of it."""
    assert tensor.node is not None
    received, primitive = swept.received.get(tensor.node.index), tensor.node.primitive
    if received is None or not isinstance(primitive, SingleStep) or tensor.node.opaque:
        return received is not None
    first = tensor.slot if primitive.separate else 0
    return any(gradient is not None for gradient in received[first : tensor.slot + 1])


def _may_run(tensor: Tensor, backward: Pass, swept: Sweep, release: Release) -> bool:
    """Whether the Node that made ``tensor`` may run although it leads to nothing that the pass is asked for."""
    if backward.wanted is None or release > ALL_ROOTS:
        return False
    begins = release == ALL_ROOTS and tensor in map(origin, backward.roots)
    return begins or not backward.wanted <= swept.asked.keys()


def past_writes(trace: Trace, number: int, tensor: Tensor, swept: Sweep, release: Release) -> Sweep | None:
    """The pass ``number`` as the Node meets it that ``tensor`` has, with nothing of what goes past that Node.

    Where torch makes the tensor as a view of something inside of its step, that is what a write goes on from, and what
    other views are taken from anew (see `hookcheck.oracle.memory.in_base`). A view also has another Node once it was
    written to where autograd does not follow. None where it is not known whether the tensor is one.
    """
    source = origin(tensor)
    node, slot, seen = source.node, source.slot, source.positions is not None
    if node is None or node.index not in swept.received:
        return swept
    backward = trace.passes[number]
    gradients = [
        (operand, gradient, not seen and not place and _goes_past(user))
        for user in trace.nodes
        if user.primitive is not None and user.index in swept.passed
        for place, (operand, gradient) in enumerate(zip(user.inputs, swept.passed[user.index]))
    ]
    gradients += [(root, cotangent, False) for root, cotangent in zip(backward.roots, backward.cotangents)]
    reaching = [
        (gradient, not past and unfollowed_writes(operand) == unfollowed_writes(tensor))
        for operand, gradient, past in gradients
        if gradient is not None and (origin(operand).node, origin(operand).slot) == (node, slot)
    ]
    if all(reaches for _, reaches in reaching):
        return swept
    inside = seen or _is_view_inside(source, swept, release)
    if not inside:
        return swept if inside is False else None
    known = [gradient for gradient, reaches in reaching if reaches]
    slots = list(swept.received[node.index])
    slots[slot] = sum(known[1:], known[0]) if known else None
    received, passed = dict(swept.received), dict(swept.passed)
    del received[node.index], passed[node.index]
    if any(gradient is not None for gradient in slots):
        received[node.index] = tuple(slots)
        passed[node.index] = handed_on(node, tuple(slots))
    return replace(swept, received=received, passed=passed)


def unfollowed_writes(tensor: Tensor) -> int:
    """How many writes it has seen that its history knows nothing of."""
    most = tensor.unfollowed
    while tensor.node is not None and tensor.node.primitive is None:
        tensor = tensor.node.inputs[tensor.slot]
        most = max(most, tensor.unfollowed)
    return most


def _goes_past(user: Node) -> bool:
    """Whether it goes on from what its first input is a view of, if that is one."""
    return isinstance(user.primitive, Taken) or _writes(user)


def _is_view_inside(tensor: Tensor, swept: Sweep, release: Release) -> bool | None:
    """Whether torch makes ``tensor`` as a view of something inside of its step; None if that is not known."""
    source = maker(tensor)
    while source.node is not None and _writes(source.node):
        source = maker(source.node.inputs[0])
    if source.node is None:
        return False
    forms = _forms(source.node, source.slot, swept, release)
    views = {bool(form and form[0] is not None and form[0].seen) for form in forms}
    return views.pop() if len(views) == 1 else None


def _handed_on(tensor: Tensor, swept: Sweep, release: Release) -> Forms:
    """What the Node that made ``tensor`` hands on."""
    assert tensor.node is not None
    asked = [_asked(operand, swept, release) for operand in tensor.node.inputs]
    return tuple(
        tuple(entry.gradient if entry and any(asked[place] for place in entry.leads) else None for entry in form)
        for form in _forms(tensor.node, tensor.slot, swept, release)
    )


def _forms(node: Node, slot: int, swept: Sweep, release: Release) -> tuple[Form, ...]:
    """The forms of the Node, whatever is asked for.

    A write in place to what torch made as a view inside of a step is one to that view's base, of whose shape the
    gradient is then.
    """
    primitive = node.primitive
    assert primitive is not None
    step = Step(
        release=release,
        operands=tuple(tensor.array for tensor in node.inputs),
        names=node.parameters,
        constants=node.buffers,
        dtypes=tuple(tensor.dtype for tensor in node.inputs),
        cotangents=materialized(node, swept.received.get(node.index, (None,) * len(node.shapes))),
        gradients=swept.passed.get(node.index, (None,) * len(node.inputs)),
        slot=slot,
        contiguous=bool(node.inputs) and origin(node.inputs[0]).contiguous,
    )
    if node.opaque:
        return ()
    if isinstance(primitive, Pasted):
        return _pasted(node, step, swept, release)
    if isinstance(primitive, SingleStep) and slot and not primitive.separate:
        whole = primitive.whole(step.inputs, step.parameters, step.cotangents, slot)
        if whole is None:
            return ()
        step = replace(step, cotangents=(*step.cotangents[:slot], whole, *step.cotangents[slot + 1 :]))
    forms = primitive.last_node(step)
    if isinstance(primitive, Taken):
        return forms if _bases(node.inputs[0], swept, release) == [None] else ()
    if not primitive.writes:
        return forms
    bases = _bases(node.inputs[0], swept, release)
    return tuple(form for base in bases for form in (forms if base is None else step.view(step.v.reshape(base))))


def _pasted(node: Node, step: Step, swept: Sweep, release: Release) -> tuple[Form, ...]:
    """The forms of the Node that a base has once it was written to through a view (``CopySlices``): the gradient of the
    base as it was, with what the write hands on for the view in its place; then all else that the write hands on.

    A base that torch makes as a view has the Node of one of what it is a view of, as it has after every write.
    """
    base, part = node.inputs
    write = part.node
    forms: list[Form] = []
    for shape in _bases(base, swept, release):
        if shape is not None:
            forms += step.view(step.v.reshape(shape))
            continue
        if write is None or write.inputs[0].node is None:
            return ()
        gradients = (swept.passed.get(each.index, (None,))[0] for each in (node, write.inputs[0].node))
        known = [gradient for gradient in gradients if gradient is not None]
        before = NodeGradient(sum(known[1:], known[0]) if known else None, (0,))
        asked = [_asked(operand, swept, release) for operand in write.inputs]
        for form in _forms(write, part.slot, swept, release):
            others = (entry if entry and any(asked[place] for place in entry.leads) else None for entry in form[1:])
            forms.append((before, *(entry and replace(entry, leads=(1,)) for entry in others)))
    return tuple(forms)


def _bases(tensor: Tensor, swept: Sweep, release: Release) -> list[Shape | None]:
    """For each form of the Node that made ``tensor``, the shape of what it is a view of inside of its step, or None.

    What is written to in place stays the view that it was. Empty where that is not known.
    """
    source = maker(tensor)
    while source.node is not None and _writes(source.node):
        source = maker(source.node.inputs[0])
    if source.node is None:
        return [None]
    bases: list[Shape | None] = []
    for form in _forms(source.node, source.slot, swept, release):
        entry = form[0] if form else None
        if entry is not None and entry.seen == "otherwise":
            return []
        bases.append(entry.gradient.shape if entry is not None and entry.seen and entry.gradient is not None else None)
    return bases


def _writes(node: Node) -> bool:
    """Whether what comes out is the first input, written to in place, or to a part of it."""
    return node.primitive is not None and (node.primitive.writes or isinstance(node.primitive, Pasted))


def _asked(tensor: Tensor, swept: Sweep, release: Release) -> bool:
    """Whether a Node works out the gradient of ``tensor``, which came into it."""
    if not tensor.requires_grad or swept.wanted is None or release < TRIMMED:
        return tensor.requires_grad
    source = maker(tensor)
    if source.node is None:
        return source.name in swept.wanted
    keys = ((source.node.index, slot) for slot in range(len(source.node.shapes)))
    return source.node.index in (swept.needed or ()) or any(key in swept.wanted for key in keys)
