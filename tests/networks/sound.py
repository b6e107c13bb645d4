"""Sound cases, by what they are about: all that is promised was observed, as `case` writes it down by hand."""

from __future__ import annotations

import numpy as np

from hookcheck.networks.case import Case
from hookcheck.probe.observation import Event, Layout, Standing
from hookcheck.topology.layers.activation import Tanh
from hookcheck.topology.model import Backward, Call, Grad, Leak
from hookcheck.topology.tree import Ref

from .cases import (
    AROUND_TWO,
    CALLED,
    CHAIN,
    FROM_Y,
    TWICE,
    UNDER_NO_GRAD,
    WITH_LITERALS,
    WRITE,
    V,
    X,
    again,
    case,
    net,
    numbers,
    raising,
    with_events,
    with_gradients,
)

PLAIN = case()
FROM_DATA = case(grad="")
FROZEN = case(grad="", frozen=("weight",), main=(CALLED,))
LITERALS = case(*WITH_LITERALS)
LEAKING = net(Call("g", "a", (X,)), Leak("g", Ref("g")), Call("h", "b", (Ref("g"),)))
INSIDE = case(LEAKING, (CALLED, Backward((Ref("leaked", ("g",)),), (V,))))
BOTH = case(LEAKING, (CALLED, Backward((Ref("y"), Ref("leaked", ("g",))), (V, V))), kind="backward")
TWICE_BACK = (Backward((Ref("y"),), (V,), retain_graph=True), FROM_Y)
TWO_PASSES = case(main=(CALLED, *TWICE_BACK))
EVALUATED = case(main=UNDER_NO_GRAD)
LEGACY = case(Tanh(), kind="backward")
"""A layer of one Node, whose own gradient is the module's."""
WRITTEN = case(main=(CALLED, *WRITE))
WRITTEN_LATER = case(main=(CALLED, Backward((Ref("y"),), (V,), retain_graph=True), *WRITE))
IN_PLACE = "Output 0 of BackwardHookFunctionBackward is a view and is being modified inplace. This view was created …"
REFUSED = raising(WRITTEN, text=IN_PLACE)
REFUSED_LATER = raising(WRITTEN_LATER, events=WRITTEN_LATER.observed.events[:1], text=IN_PLACE)
UNUSED = case(*AROUND_TWO)
(UNCERTAIN,) = (event for event in UNUSED.observed.events if event.path == "two.b")
WITHOUT_UNCERTAIN = with_events(UNUSED, *(event for event in UNUSED.observed.events if event is not UNCERTAIN))
PLACE = UNUSED.observed.events.index(UNCERTAIN)
(OF_TWO,) = (place for place, event in enumerate(UNUSED.observed.events) if event.path == "two")
ACTING = case(kind="acting_full_backward")
BEFORE = case(kind="full_backward_pre")
CALLING = case(CHAIN, kind="forward_kwargs")
LEAVES = case(CHAIN, kind="tensor")
ACCUMULATED = case(main=(CALLED, Backward((Ref("y"),), (V,), retain_graph=True), FROM_Y), kind="post_accumulate")
OUTPUTS = case(CHAIN, kind="output_tensor")
NODES = case(CHAIN, kind="output_node")
BEFORE_NODES = case(CHAIN, kind="output_node_pre")
RETAINING = case(CHAIN, kind="output_retain_grad")
AT_ONCE = case(CHAIN, kind="multi_grad")
SAVING = case(kind="saved_tensors")
SAVING_NOTHING = with_events(case(kind="saved_tensors", main=UNDER_NO_GRAD))
ASKING = (CALLED, Grad("d", (Ref("y"),), (V,), (X,)))


def chained(c: Case, *links: tuple[int, Event]) -> Case:
    """The case with other calls of the hooks in a chain."""
    return again(c, chained=links)


RECORDED = case(main=(CALLED, Grad("d", (Ref("y"),), (X,), (V,), create_graph=True)))
UNHOOKED = Standing("y", False, False, 0, (1,))
"""What an output of one axis is, made by the module itself."""


def standing(c: Case, hooked: Standing, name: str = "y") -> Case:
    """``c`` where under the hook a tensor is another than it is without."""
    return again(c, {"standings": {name: UNHOOKED}}, standings={name: hooked})


def laid_out(size: int, hooked: Layout) -> Case:
    """A run in which the gradient of ``x`` has so many numbers, and under the hook is another than it is without."""
    gradients = {**PLAIN.plain.gradients, "x": np.ones(size)}
    plain = {"gradients": gradients, "layouts": {"x": Layout((1,), False)}}
    return again(PLAIN, plain, gradients=gradients, layouts={"x": hooked})


SOUND = {
    "a hook that acts": ACTING,
    "a hook that acts on outputs": case(kind="acting_forward"),
    "pre-hooks": BEFORE,
    "forward hooks": CALLING,
    "forward pre-hooks": case(CHAIN, kind="forward_pre"),
    "hooks on leaves": LEAVES,
    "post-accumulate hooks": ACCUMULATED,
    "hooks on outputs": OUTPUTS,
    "hooks on Nodes": NODES,
    "pre-hooks on Nodes": BEFORE_NODES,
    "outputs retain their gradient": RETAINING,
    "outputs retain the sum of gradients": case(main=(CALLED, *TWICE_BACK), kind="output_retain_grad"),
    "outputs retain none": case(main=(CALLED,), kind="output_retain_grad"),
    "a hook on all leaves": AT_ONCE,
    "saved tensors": SAVING,
    "nothing to save": SAVING_NOTHING,
    "a pre-hook that acts": case(kind="acting_full_backward_pre"),
    "a forward pre-hook that acts": case(kind="acting_forward_pre"),
    "plain": PLAIN,
    "chain": case(CHAIN),
    "called twice": case(TWICE),
    "from data": FROM_DATA,
    "frozen": FROZEN,
    "literals": LITERALS,
    "inside": INSIDE,
    "two passes": TWO_PASSES,
    "under no_grad": EVALUATED,
    "legacy": LEGACY,
    "the output is a view under a full hook": standing(PLAIN, UNHOOKED._replace(object="other", view=True, leaf=True)),
    "an axis of one number has another stride": standing(LEGACY, UNHOOKED._replace(strides=(2,))),
    "a write in place is refused": REFUSED,
    "a write in place is refused behind a backward": REFUSED_LATER,
    "a write in place under a legacy hook": case(Tanh(), main=(CALLED, *WRITE), kind="backward"),
    "what made an unused output is called with zeros": UNUSED,
    "what made an unused output is called with None": with_gradients(UNUSED, ..., numbers(None), place=PLACE),
    "what made an unused output is not called": WITHOUT_UNCERTAIN,
    "an unused output has None": with_gradients(UNUSED, ..., numbers(7, None), place=OF_TWO),
}
