"""Calls of hooks that are due: of a hook on a module, and of one on a tensor."""

from __future__ import annotations

from dataclasses import dataclass

from hookcheck.oracle.gradient import Gradient
from hookcheck.oracle.graph import CallTrace, Node, Tensor
from hookcheck.oracle.sweep import Sweep, materialized


@dataclass(frozen=True, eq=False)
class Firing:
    """One call of a hook that is due.

    ``grad_input`` has an entry for each positional argument of the module call, ``grad_output`` one for each output;
    an entry is None where the gradient is absent. ``early`` tells the rule under which it fires: False when the
    gradients with respect to the inputs are computed, True when those of the outputs are, since no input requires grad.
    ``node`` is the node at which it fires, and ``earlier`` a bit mask of the nodes that run before that one. ``met``
    tells what the passes before met of the call: ``nothing``, ``outputs alone`` since they last met its inputs, or
    ``both``.

    Joined boundaries make gradients that a run without hooks does not compute: if only one output of an enclosing
    module is used, what made the others receives zeros or None, depending on the release. ``certain`` is False for a
    firing that is due to such gradients alone, and ``open`` are the places of ``grad_output`` that may be None or zero.
    """

    call: CallTrace
    backward: int
    grad_input: tuple[Gradient, ...]
    grad_output: tuple[Gradient, ...]
    early: bool
    node: int
    earlier: int
    certain: bool = True
    open: frozenset[int] = frozenset()
    met: str = "nothing"

    def side(self, name: str) -> tuple[tuple[Gradient, ...], tuple[Tensor | None, ...], frozenset[int]]:
        """``grad_input`` or ``grad_output``: the gradients, of which tensors, and the places that are open."""
        if name == "grad_input":
            return self.grad_input, self.call.args, frozenset()
        return self.grad_output, self.call.outputs, self.open


@dataclass(frozen=True, eq=False)
class TensorCall:
    """One call of a hook on a tensor: a leaf's ``name`` (or ``path[position]`` of a module's output), in which backward
    pass, and with which gradient.

    ``number`` counts the calls of the module from 0; ``leaf`` says whether the tensor is a leaf. Of an output the
    gradient may be ``unknown``, and then is None.
    """

    name: str
    backward: int
    gradient: Gradient
    number: int = 0
    leaf: bool = True
    unknown: bool = False


def met(call: CallTrace, sweeps: tuple[Sweep, ...]) -> str:
    """What passes have met of a call, as `Firing.met` has it."""
    sides = "nothing"
    for swept in sweeps:
        entered, left = (node is not None and node.index in swept.received for node in (call.entry, call.exit))
        if left:
            sides = "both" if entered else "outputs alone"
        elif entered and sides != "nothing":
            sides = "both"
    return sides


def firing(call: CallTrace, node: Node, number: int, swept: Sweep, plain: Sweep, before: str) -> Firing:
    """The firing at ``node`` in the pass ``number``, whose sweep is ``swept``, and ``plain`` without boundaries; passes
    ``before`` met of the call what `met` says."""
    inputs = materialized(node, swept.received[node.index]) if node is call.entry else ()
    outputs = swept.received.get(call.exit.index, ()) if call.exit else ()
    without = plain.received.get(call.exit.index, (None,) * len(outputs)) if call.exit else ()
    doubtful = [i for i, (joined, alone) in enumerate(zip(outputs, without)) if joined is not None and alone is None]
    places = [i for i, t in enumerate(call.outputs) if t is not None]
    return Firing(
        call=call,
        backward=number,
        grad_input=_placed(tuple(t is not None for t in call.args), inputs),
        grad_output=_placed(tuple(t is not None for t in call.outputs), outputs),
        early=call.entry is None,
        node=node.index,
        earlier=swept.earlier[node.index],
        certain=node.index in plain.received,
        open=frozenset(places[i] for i in doubtful),
        met=before,
    )


def _placed(tensors: tuple[bool, ...], gradients: tuple[Gradient, ...]) -> tuple[Gradient, ...]:
    """One entry a position: the gradients in turn where there is a tensor, None elsewhere (and where there is none)."""
    rest = iter(gradients)
    return tuple(next(rest, None) if is_tensor else None for is_tensor in tensors)
