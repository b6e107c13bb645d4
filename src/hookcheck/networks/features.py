"""What is there to say about a network, a run, a call or a firing? Its features, which ledger entries name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from hookcheck.contract.explaining import Features
from hookcheck.oracle.due import Firing
from hookcheck.oracle.expected import Expected
from hookcheck.oracle.graph import CallTrace, Node
from hookcheck.oracle.last_node import ties
from hookcheck.oracle.memory import Pasted
from hookcheck.topology.contexts import GRAD_MODES
from hookcheck.topology.layers.convolution import Conv2d
from hookcheck.topology.layers.padding import ReflectionPad2d
from hookcheck.topology.model import (
    Apply,
    Composite,
    Sequential,
    inside,
    nesting,
    statements,
    tensor_classes,
    walk,
    writes,
)
from hookcheck.topology.ops.views import Permute, Transpose
from hookcheck.topology.primitive import Layer

Traced = TypeVar("Traced", Expected, CallTrace)

REORDERING = (Permute, Transpose)
"""Operations that hand a gradient on with its strides in another order."""

CHANNELS_LAST = ("channels last", "channels last, 3-D")
"""The classes of tensors (see `hookcheck.topology.tensors`) that are laid out so."""

OF_IMAGES = ("BatchNorm2d", "BatchNorm3d", "InstanceNorm2d", "InstanceNorm3d")
"""Layers that know an image's channels-last layout, and work through batch_norm."""


def _while_alive(function: Callable[[Traced], Features]) -> Callable[[Traced], Features]:
    """Works each out once, and forgets it with what it is about: a cache of the last so many would keep their graphs,
    and where one network takes megabytes so do those drawn after it."""
    known: WeakKeyDictionary[Traced, Features] = WeakKeyDictionary()

    @wraps(function)
    def features(traced: Traced) -> Features:
        known_features = known.get(traced)
        if known_features is None:
            known_features = known[traced] = function(traced)
        return known_features

    return features


def firing_features(firing: Firing) -> Features:
    """The features of a firing: those of its call, ``reached``: ``output``, or ``inside`` where the gradient of no
    output is computed; and what passes before ``met`` of the call (see `Firing`)."""
    reached = "inside" if all(g is None for g in firing.grad_output) else "output"
    return {**call_features(firing.call), "reached": frozenset({reached}), "met": frozenset({firing.met})}


@_while_alive
def network_features(expected: Expected) -> Features:
    """What matters about a network as a whole, as sets of words, for the ledger to name.

    ``ties`` says whether the larger or smaller of two equal numbers is taken anywhere, and ``writes`` whether any step
    works in place, and if one does so ``through a view``; ``layout`` is ``reordered`` where a normalisation of images
    may get a gradient whose strides are in another order than its input's, ``ambiguous`` where an axis of one entry
    leaves open whether images are channels-last, and ``plain`` where neither is; ``mirrored`` says whether a column of
    an image is mirrored at ``both`` of its sides, in a row that is mirrored too, or at ``one`` at most; ``stale`` says
    whether a pass meets the inputs alone of a call whose outputs one before it has met, and ``unused`` whether one
    comes to no gradient of a leaf, or of what it is asked for; ``tensor`` holds the classes of tensors in it;
    ``inside`` holds the contexts that the network runs inside of, grad modes left out, or ``nothing``, and ``… within
    itself`` of one that is.
    """
    topology = expected.topology
    through_view = any(isinstance(node.primitive, Pasted) for node in expected.trace.nodes)
    contexts = {*inside(topology)}.difference(GRAD_MODES)
    contexts |= {f"{outer} within itself" for outer, inner in nesting(topology) if outer == inner}
    ops = {type(s.op) for s in statements(topology) if isinstance(s, Apply)}
    tensors = frozenset(tensor_classes(topology))
    modules = {type(module).__name__ for _, module in walk(topology.module)}
    orders = {
        "reordered": not ops.isdisjoint(REORDERING) and not modules.isdisjoint(OF_IMAGES),
        "ambiguous": any(
            isinstance(node.primitive, REORDERING) and len(node.shapes[0]) in (4, 5) and 1 in node.shapes[0]
            for node in expected.trace.nodes
        )
        or (not tensors.isdisjoint(CHANNELS_LAST) and any(1 in i.shape for i in topology.inputs)),
    }
    return {
        "ties": frozenset({"yes" if ties(expected.trace) else "no"}),
        "writes": frozenset(["yes", *["through a view"] * through_view] if writes(topology) else ["no"]),
        "layout": frozenset(word for word, holds in orders.items() if holds) or frozenset({"plain"}),
        "mirrored": frozenset({"both" if any(map(_mirrors_both_ways, expected.trace.nodes)) else "one"}),
        "inside": frozenset(contexts or {"nothing"}),
        "stale": frozenset({"yes" if any(map(_is_stale, expected.firings)) else "no"}),
        "unused": frozenset({"yes" if expected.unused else "no"}),
        "tensor": tensors or frozenset({"plain"}),
    }


@_while_alive
def run_features(expected: Expected) -> Features:
    """The features of all calls and firings of a run taken together, those of its network, and its own.

    ``leaves`` is ``joined`` where the joined boundary of a module's inputs gives a gradient to a leaf that has none
    without hooks, ``joined by outputs`` where that of its outputs does, and ``alone`` elsewhere; ``asks`` is ``grad``
    where the program goes on with what a pass gives, or ``backward``; ``roots`` tells what passes begin at (see
    `Expected.starts_at`).
    """
    joined = {"inputs": "joined", "outputs": "joined by outputs"}
    passes = expected.trace.passes
    asks = any(backward.named for backward in passes)
    of_run = {
        "leaves": frozenset(joined[side] for side in expected.joined) or frozenset({"alone"}),
        "asks": frozenset({"grad" if asks else "backward"}),
        "roots": frozenset(map(expected.starts_at, passes)),
    }
    calls, firings = map(call_features, expected.trace.calls), map(firing_features, expected.firings)
    return together([of_run, network_features(expected), *calls, *firings])


def together(several: Iterable[Features]) -> Features:
    """All words that any of ``several`` has for a feature."""
    total: dict[str, frozenset[str]] = {}
    for features in several:
        for key, words in features.items():
            total[key] = total.get(key, frozenset()) | words
    return total


@_while_alive
def call_features(call: CallTrace) -> Features:
    """What matters about a call, as sets of words, for the ledger to name.

    ``module`` (the layer's class, ``Sequential`` or ``Composite``), ``mode``, ``inputs`` and ``outputs`` (``all``,
    ``some`` or ``none`` of the tensors require grad), ``steps`` (``one`` or ``many`` differentiable steps), and of the
    step that made the first output: ``last`` (its class), ``rank`` (of its first input) and ``bias``.
    """
    module = call.module
    container = (
        "Composite" if isinstance(module, Composite) else "Sequential" if isinstance(module, Sequential) else None
    )
    words = {
        "module": container or type(module).__name__,
        "mode": call.mode,
        "inputs": _how_many([t.requires_grad for t in call.args if t is not None]),
        "outputs": _how_many([t.requires_grad for t in call.outputs if t is not None]),
    }
    steps = [node for node in call.steps if node.primitive is not None]
    if steps:
        last = steps[-1]
        words["steps"] = "one" if len(steps) == 1 else "many"
        words["last"] = type(last.primitive).__name__
        words["rank"] = str(last.inputs[0].array.ndim)
        if isinstance(last.primitive, Layer) and last.primitive.parameters():
            words["bias"] = "yes" if "bias" in last.primitive.parameters() else "no"
    return {key: frozenset({word}) for key, word in words.items()}


def _mirrors_both_ways(node: Node) -> bool:
    """Whether it pads an image by mirroring that is so narrow that a column comes up at both sides, and a row too."""
    step = node.primitive
    if isinstance(step, Conv2d) and step.padding_mode == "reflect":
        high, wide = step.margins
        step = ReflectionPad2d((wide, wide, high, high))
    if not isinstance(step, ReflectionPad2d):
        return False
    rows, columns = (read.sum(0) for read in step.matrices(node.inputs[0].array.shape[-2:]))
    return bool(rows.max() > 1 and columns.max() > 2)


def _is_stale(firing: Firing) -> bool:
    return firing.met != "nothing" and all(gradient is None for gradient in firing.grad_output)


def _how_many(flags: list[bool]) -> str:
    return "none" if not any(flags) else "all" if all(flags) else "some"
