"""What must be seen? For each call of a hooked module and each backward pass: whether, with what, and after what its
hook fires; and which gradients the leaves end up with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from hookcheck.hooks.acts import NO_ACTS, Acts
from hookcheck.oracle.due import Firing, TensorCall, firing, met
from hookcheck.oracle.gradient import Gradient
from hookcheck.oracle.graph import CallTrace, Node, Pass, Tensor, Trace, newest, origin, tensors_in
from hookcheck.oracle.last_node import (
    NodeCall,
    aliased,
    at_its_node,
    node_calls,
    past_writes,
    transformed,
    unfollowed_writes,
)
from hookcheck.oracle.overflow import cancels, disputed, overflows
from hookcheck.oracle.rounding import MARGIN, TRIALS, Noise
from hookcheck.oracle.sweep import Sweep, sweep
from hookcheck.oracle.tolerance import DIFFERENCES, STEPS, UNIT, close, coarsest, within
from hookcheck.oracle.trace import trace
from hookcheck.topology.contexts import WRAPPING
from hookcheck.topology.last_node import LATEST, Release
from hookcheck.topology.model import Topology, inside, tensor_classes, walk
from hookcheck.topology.primitive import Array, Layer
from hookcheck.topology.tensors import TENSORS
from hookcheck.topology.values import parameter_shapes


class Expected:
    """Everything that the oracle has to say about one topology; each part is worked out when first asked for."""

    def __init__(
        self,
        topology: Topology,
        numbers: Mapping[str, Array],
        noise: Noise | None = None,
        acts: Acts = NO_ACTS,
        unchanged: Expected | None = None,
        release: Release = LATEST,
        device: str = "cpu",
    ) -> None:
        """``numbers`` are the values of parameters and inputs, as `hookcheck.topology.values.values` gives them.

        ``acts`` is what hooks on every module change. ``unchanged`` is the same network without them, if it is worked
        out already and they leave all of its forward alone. ``release`` and ``device`` are of the torch that runs it.
        """
        self.topology = topology
        self.numbers = numbers
        self.acts = acts
        self._noise = noise
        self._unchanged = unchanged
        self.release = release
        self.device = device

    @cached_property
    def trace(self) -> Trace:
        """What the program does, forward, and its backward passes."""
        if self._unchanged:
            return replace(self._unchanged.trace, acts=self.acts)
        return trace(self.topology, self.numbers, self._noise, self.acts, self.device)

    def acting(self, acts: Acts) -> Expected:
        """The same network where hooks on every module change ``acts``; what those leave alone is not worked out again.

        Hooks that scale gradients leave forward alone, unless it goes on with what a backward gives; if it
        differentiates that, nothing is `worked_out`.
        """
        alone = self.trace.doubled or not any(backward.named for backward in self.trace.passes)
        unchanged = self if acts.backward and alone else None
        return Expected(self.topology, self.numbers, None, acts, unchanged, self.release, self.device)

    @cached_property
    def worked_out(self) -> bool:
        """Whether the oracle has a say on the hooks of this run.

        Not where a gradient that they change is itself differentiated, nor where an argument that they scale leaves the
        domain that a layer's formula is for, or is one that cannot be scaled.
        """
        if self.acts.backward:
            return not self.trace.doubled
        layers = (module for _, module in walk(self.topology.module) if isinstance(module, Layer))
        constant = any(TENSORS[name].constant for name in tensor_classes(self.topology))
        return self.acts == NO_ACTS or (not constant and all(layer.scalable for layer in layers))

    @cached_property
    def overflows(self) -> bool:
        """Whether a number on the way is too large for its dtype, or lost in it (see `hookcheck.oracle.overflow`)."""
        lost = cancels(self.trace, self.dtype, self.release)
        return lost or overflows(self.trace, (*self.hooked, *self.plain), self.dtype)

    @cached_property
    def disputed(self) -> bool:
        """Whether a number on the way lies on a kink at which releases differ (see `hookcheck.oracle.overflow`)."""
        return disputed(self.trace, (*self.hooked, *self.plain))

    @cached_property
    def dtype(self) -> str:
        """The coarsest floating dtype of the network: that whose rounding decides how close torch can come."""
        return coarsest(self.trace.dtypes)

    def close(self, observed: Array, expected: Array, measured: bool = True) -> bool:
        """Whether ``observed`` differs from ``expected``, one of the gradients given here, by no more than rounding.

        By the table of tolerances; if ``measured``, by what rounding does to this very network as well, and where a
        kink is `disputed`, each number may be any. Runs with other hook kinds mostly show the same numbers, bit for
        bit, so what was found is kept.
        """
        key = (id(expected), observed.dtype, observed.shape, observed.tobytes(), measured)
        known = self._compared.get(key) or (expected, self._close(observed, expected, measured))
        self._compared[key] = known
        return known[1]

    @cached_property
    def _compared(self) -> dict[tuple[object, ...], tuple[Array, bool]]:
        """What `close` found, and the array itself, lest another one get its ``id``."""
        return {}

    def _close(self, observed: Array, expected: Array, measured: bool) -> bool:
        if close(observed, expected, self.dtype, self.device, self.trace.doubled):
            return True
        if not measured or observed.shape != expected.shape or id(expected) not in self._places:
            return False
        if self.disputed:
            return True
        if expected.dtype.kind not in "fc":
            return bool(np.any([observed == each for each in (expected, *self._moved(expected))], axis=0).all())
        return within(observed, expected, self.allowance(expected))

    def _moved(self, array: Array) -> list[Array]:
        """What becomes of an array that is given here where rounding moves the numbers that it was worked out from."""
        others = (again.arrays[self._places[id(array)]] for again in self._again())
        return [other for other in others if other is not None]

    def allowance(self, gradient: Array) -> Array:
        """How far each number of a gradient that is given here may be off for what rounding does to this network.

        In the wide types relative to the largest gradient that the backward passes meet, since what cancels on the way
        leaves the errors of what it was; and what the network makes of errors on the way, with a margin.
        """
        magnitude = max(1.0, float(abs(gradient).max(initial=0)))
        largest = max(magnitude, self._largest) if self.dtype in ("float64", "float32") else magnitude
        slack = STEPS[self.dtype] * UNIT[self.dtype, self.device] * largest
        if self.trace.doubled:
            slack = max(slack, DIFFERENCES * magnitude)
        changes = [np.abs(other - gradient) for other in self._moved(gradient)]
        return np.asarray(slack + MARGIN[self.dtype] * np.max(changes, axis=0, initial=0))

    @cached_property
    def _largest(self) -> float:
        """The largest number among the gradients that all passes hand on."""
        sweeps = (*self.hooked, *self.plain)
        arrays = (g for swept in sweeps for part in swept.passed.values() for g in part if g is not None and g.size)
        return max((float(np.abs(array).max()) for array in arrays), default=0.0)

    def _again(self) -> tuple[Expected, ...]:
        """The same network, worked out with rounding at every step."""
        if not self._noisy:
            sizes: dict[int, list[float]] = {}
            noises = [Noise(trial, self.dtype, self.device, sizes) for trial in range(TRIALS)]
            again = (self.topology, self.numbers)
            under = (self.release, self.device)
            self._noisy += [Expected(*again, each, self.trace.acts, None, *under) for each in noises]
        return tuple(self._noisy)

    @cached_property
    def _noisy(self) -> list[Expected]:
        return []

    @cached_property
    def gradients(self) -> list[Gradient]:
        """Every gradient that is given out here, in an order that depends on the topology alone."""
        fired = [g for firing in (*self.firings, *self.pre_firings) for g in (*firing.grad_input, *firing.grad_output)]
        calls = (*self.leaf_calls, *self.accumulations, *self.output_calls, *self.retained)
        return [*fired, *(due.gradient for due in self.of_first_output), *(call.gradient for call in calls)]

    @cached_property
    def arrays(self) -> list[Gradient]:
        """Every array of numbers that is given out here: the gradients, and what forward computes."""
        values = [(call.given, dict(call.keywords), call.left, call.result) for call in self.trace.calls]
        tensors = [t for value in (*values, newest(dict(self.trace.names))) for t in tensors_in(value)]
        handed_on = [gradient for due in self.of_first_output for form in due.forms for gradient in form]
        return [*self.gradients, *(t.array for t in tensors), *handed_on]

    @cached_property
    def _places(self) -> dict[int, int]:
        """Where in that order an array stands, by its ``id``."""
        return {id(array): place for place, array in enumerate(self.arrays) if array is not None}

    @cached_property
    def hooked(self) -> tuple[Sweep, ...]:
        """The backward passes with every module call bounded: what a full backward hook looks at."""
        return tuple(sweep(self.trace, backward, joined=True) for backward in self.trace.passes)

    @cached_property
    def joined(self) -> frozenset[str]:
        """Which boundaries give a gradient to a leaf that has none without hooks: those of ``inputs``, or of
        ``outputs``."""
        gained = [hooked.asked.keys() - plain.asked.keys() for hooked, plain in zip(self.hooked, self.plain)]
        if not any(gained):
            return frozenset()
        alone = [sweep(self.trace, backward, joined=True, filling=False).asked.keys() for backward in self.trace.passes]
        by_inputs = any(keys & asked for keys, asked in zip(gained, alone))
        by_outputs = any(keys - asked for keys, asked in zip(gained, alone))
        return frozenset([*["inputs"] * by_inputs, *["outputs"] * by_outputs])

    @cached_property
    def plain(self) -> tuple[Sweep, ...]:
        """The backward passes without boundaries: what happens when no hook is there."""
        if self._unchanged:
            return self._unchanged.plain
        return tuple(sweep(self.trace, backward, joined=False) for backward in self.trace.passes)

    @cached_property
    def unused(self) -> bool:
        """Whether a pass comes to no gradient of a leaf that requires one, or of what it is asked for."""
        leaves = {i.name for i in self.topology.inputs if i.requires_grad}
        leaves |= parameter_shapes(self.topology).keys() - set(self.topology.frozen)
        wanted = [leaves if backward.wanted is None else backward.wanted for backward in self.trace.passes]
        return any(keys - swept.asked.keys() for keys, swept in zip(wanted, self.plain))

    @cached_property
    def firings(self) -> tuple[Firing, ...]:
        """Every firing that the documented rules of ``register_full_backward_hook`` demand.

        The hook fires when the gradients with respect to the inputs are computed; if no input requires grad, when those
        with respect to the outputs are; if no output requires grad either, never.
        """
        return self._firings(lambda call: call.entry or call.exit)

    @cached_property
    def pre_firings(self) -> tuple[Firing, ...]:
        """Every firing that those of ``register_full_backward_pre_hook`` demand: when the gradients with respect to the
        outputs are there, before anything inside of the module runs."""
        return self._firings(lambda call: call.exit)

    def _firings(self, at: Callable[[CallTrace], Node | None]) -> tuple[Firing, ...]:
        return tuple(
            firing(call, node, number, swept, plain, met(call, self.hooked[:number]))
            for number, (swept, plain) in enumerate(zip(self.hooked, self.plain))
            for call in self.trace.calls
            for node in [at(call)]
            if node is not None and node.index in swept.received
            if any(output is not None and output.requires_grad for output in call.outputs_inside)
        )

    @cached_property
    def of_first_output(self) -> tuple[NodeCall, ...]:
        """Every call that is due of a hook on the grad_fn of a module's first output: a legacy hook."""
        due = tuple(node_calls(self.trace, self.plain, self.release))
        if not set(WRAPPING).isdisjoint(inside(self.topology)):
            due = transformed(due)
        wraps = any(TENSORS[name].wraps for name in tensor_classes(self.topology))
        return aliased(due) if wraps else due

    @cached_property
    def acted(self) -> tuple[Sweep, ...]:
        """The backward passes as they are where hooks act on gradients, and as they are without hooks otherwise."""
        return self.hooked if self.trace.acts.backward else self.plain

    @cached_property
    def leaf_gradients(self) -> dict[str, Array]:
        """``.grad`` of every leaf that has one at the end of the run, by name; shapes are the leaves'."""
        return {call.name: call.gradient for call in self.accumulations if call.gradient is not None}

    @cached_property
    def leaf_calls(self) -> tuple[TensorCall, ...]:
        """For each backward pass and each leaf that it gives a gradient: that gradient, which a hook gets."""
        return tuple(
            TensorCall(name, number, gradient)
            for number, swept in enumerate(self.acted)
            for name, gradient in swept.asked.items()
            if isinstance(name, str)
        )

    @cached_property
    def accumulations(self) -> tuple[TensorCall, ...]:
        """For each backward pass and each leaf whose ``.grad`` it changes: ``.grad`` as it is then."""
        total: dict[str, Array] = {}
        calls = []
        for call in self.leaf_calls:
            if self.trace.passes[call.backward].accumulates:
                assert call.gradient is not None
                known = total.get(call.name)
                total[call.name] = call.gradient if known is None else known + call.gradient
                calls.append(TensorCall(call.name, call.backward, total[call.name]))
        return tuple(calls)

    @cached_property
    def output_calls(self) -> tuple[TensorCall, ...]:
        """For each call, each of its output tensors, and each backward pass that runs the step which made it (or gives
        the leaf that it is a gradient): the gradient of that tensor, by ``path[position]``.

        It is unknown where `at_its_node` has none, and where a pass begins at the tensor and leads to nothing that
        is asked for: from one root the engine calls its hooks before it finds that out.
        """
        return tuple(
            due
            for backward in range(len(self.plain))
            for call, name, tensor in self._outputs
            if backward >= call.after
            for due in self._output_call(call, name, tensor, backward)
        )

    def _output_call(self, call: CallTrace, name: str, tensor: Tensor, backward: int) -> Iterator[TensorCall]:
        """That of a hook on ``tensor`` in one pass, if there is one."""
        source, seen = origin(tensor), unfollowed_writes(tensor)
        roots = [origin(root) for root in self.trace.passes[backward].roots if unfollowed_writes(root) == seen]
        swept = past_writes(self.trace, backward, tensor, self.plain[backward], self.release)
        if swept is None:
            yield TensorCall(name, backward, None, call.number, False, unknown=True)
        elif source.node is not None and source.node.index in swept.received:
            gradient = at_its_node(source, swept)
            yield TensorCall(name, backward, gradient, call.number, False, gradient is None)
        elif source.node is not None and any(source is root for root in roots):
            yield TensorCall(name, backward, None, call.number, False, unknown=True)
        elif source.node is None and source.name in swept.asked:
            yield TensorCall(name, backward, swept.asked[source.name], call.number)

    @property
    def _outputs(self) -> Iterator[tuple[CallTrace, str, Tensor]]:
        """Every output of a call that requires grad, with the name that its hooks go by."""
        for call in self.trace.calls:
            for position, tensor in enumerate(call.outputs_inside):
                if tensor is not None and origin(tensor).requires_grad:
                    yield call, f"{call.path}[{position}]", tensor

    @cached_property
    def retained(self) -> tuple[TensorCall, ...]:
        """For each call and each of its output tensors that is no leaf: the sum of its gradients over all passes.

        It is unknown where one of them is.
        """
        totals = []
        for call, name, tensor in self._outputs:
            if origin(tensor).node is not None:
                calls = [
                    due
                    for backward in range(call.after, len(self.plain))
                    for due in self._output_call(call, name, self._then(tensor, backward), backward)
                ]
                known = [c.gradient for c in calls if c.gradient is not None]
                total = sum(known[1:], known[0]) if known else None
                totals.append(TensorCall(name, 0, total, call.number, False, any(c.unknown for c in calls)))
        return tuple(totals)

    def _then(self, tensor: Tensor, backward: int) -> Tensor:
        """What ``tensor`` is by that pass, with all that was written to it before."""
        nodes = self.trace.passes[backward].nodes
        while tensor.newer is not None and (tensor.newer.node is None or tensor.newer.node.index < nodes):
            tensor = tensor.newer
        return tensor

    def starts_at(self, backward: Pass) -> str:
        """``leaf`` if a pass begins at one leaf, boundaries aside, and at nothing else; ``step`` if not."""
        nodes = [origin(root).node for root in backward.roots]
        return "leaf" if nodes == [None] else "step"

    def known_gradients(self, call: CallTrace, backward: int) -> dict[str, Array]:
        """Every gradient that has to do with ``call`` in one pass, by a name for people, parameters included."""
        swept = self.hooked[backward]
        steps = {node.index for node in call.steps}
        inside = [c for c in self.trace.calls if c.entry is not None and c.entry.index in steps]
        known: dict[str, Array] = {}
        for part in (call, *inside):
            owner = f"{_below(part.path, call.path)}." if part is not call else ""
            for side, boundary in (("input", part.entry), ("output", part.exit)):
                gradients = swept.received.get(boundary.index, ()) if boundary is not None else ()
                known.update({f"{owner}{side}[{i}]": g for i, g in enumerate(gradients) if g is not None})
        for node in call.steps:
            count = len(node.inputs) - len(node.parameters)
            for tensor, gradient in zip(node.inputs[count:], swept.passed.get(node.index, ())[count:]):
                if gradient is not None:
                    known[_below(tensor.name, call.path)] = gradient
        return known


def _below(name: str, path: str) -> str:
    return name[len(path) + 1 :] if path and name.startswith(f"{path}.") else name
