"""What does a clause get to see? One case: the topology, what the oracle expects, and what torch did with and without
hooks; and the subjects that clauses judge in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import accumulate
from types import SimpleNamespace
from typing import Any

import numpy as np

from hookcheck.contract.explaining import Features
from hookcheck.hooks.kinds import BACKWARD_PRE, HookKind
from hookcheck.networks import legacy
from hookcheck.networks.features import (
    call_features,
    firing_features,
    network_features,
    run_features,
    together,
)
from hookcheck.oracle.due import Firing
from hookcheck.oracle.expected import Expected
from hookcheck.oracle.gradient import Gradient
from hookcheck.oracle.graph import CallTrace, Tensor
from hookcheck.oracle.last_node import NodeCall
from hookcheck.probe.observation import Copy, Event, Observation, dtype_of, numbers, same
from hookcheck.topology.cuda_kernels import UNORDERED, UNORDERED_PADDING
from hookcheck.topology.model import Apply, Backward, Grad, Topology, statements, walk
from hookcheck.topology.primitive import Array


@dataclass(frozen=True, eq=False)
class Pair:
    """A firing that is due and the event that answers it, or None where the hook was not called."""

    firing: Firing
    event: Event | None


@dataclass(frozen=True, eq=False)
class Case:
    """One topology, run with one hook kind on one device. ``plain`` is the same run without hooks.

    ``elsewhere`` is the same run on the CPU where ``device`` is another one. Two fields are for a second look.
    ``bounded`` is the run without hooks, with identities of our own where a full hook has its own. If ``measured``,
    what rounding does to this very network counts beside the table of tolerances.
    """

    topology: Topology
    kind: HookKind
    device: str
    expected: Expected
    observed: Observation
    plain: Observation
    measured: bool = False
    bounded: Observation | None = None
    elsewhere: Observation | None = None

    def close(self, observed: Copy, expected: Array, dtype: str) -> bool:
        """Whether ``observed`` is the tensor ``expected`` of that dtype, its numbers within what rounding explains."""
        return self._is(observed, expected, dtype, self.measured)

    def alike(self, observed: Array, expected: Array) -> bool:
        """Whether both have one shape and, within what rounding explains, the same numbers."""
        return _alike(self.expected, observed, expected, self.measured)

    def agrees(self, observed: Copy, expected: Any) -> bool:
        """Whether ``observed`` is what the oracle says (``...``: anything, or nothing), tensors as `close` has it."""
        if isinstance(expected, Tensor):
            return self.close(observed, expected.array, expected.dtype)
        if expected is Ellipsis:
            return True
        if isinstance(expected, SimpleNamespace) or hasattr(expected, "_fields"):
            items = list(vars(expected).values() if isinstance(expected, SimpleNamespace) else expected)
            entries = [item for key, item in observed.items() if key != "type"] if isinstance(observed, dict) else None
            return entries is not None and len(entries) == len(items) and all(map(self.agrees, entries, items))
        if isinstance(expected, dict):
            certain = {key: item for key, item in expected.items() if item is not Ellipsis}
            if not isinstance(observed, dict) or observed.keys() - (expected.keys() - certain.keys()) != certain.keys():
                return False
            return all(self.agrees(observed[key], item) for key, item in certain.items())
        if isinstance(expected, (tuple, list)):
            if isinstance(observed, dict) and isinstance(expected, tuple):  # torch.max gives a tuple of its own type
                observed = tuple(item for key, item in observed.items() if key != "type")
            if not isinstance(observed, (tuple, list)) or type(observed) is not type(expected):
                return False
            return len(observed) == len(expected) and all(map(self.agrees, observed, expected))
        return same(observed, None if expected is None else repr(expected))

    def _is(self, observed: Copy, expected: Array, dtype: str, measured: bool) -> bool:
        tensor = isinstance(observed, np.ndarray) and dtype_of(observed) == dtype
        return tensor and _alike(self.expected, observed, expected, measured)  # type: ignore[arg-type]

    @property
    def forbidden(self) -> bool:
        """Whether the network writes to a module's input or output in place, which full backward hooks forbid."""
        return self.kind.variant == "full" and self.expected.trace.allowed is not None

    @cached_property
    def firings(self) -> tuple[Firing, ...]:
        """Every firing that is due; those of passes behind a forbidden statement are not."""
        due = self.expected.pre_firings if self.kind.call == BACKWARD_PRE else self.expected.firings
        allowed = self.expected.trace.allowed
        return tuple(f for f in due if f.backward < (allowed or 0)) if self.forbidden else due

    @cached_property
    def events(self) -> dict[str, list[Event]]:
        """The events of each module path, in the order in which they happened."""
        by_path: dict[str, list[Event]] = {}
        for event in self.observed.events:
            by_path.setdefault(event.path, []).append(event)
        return by_path

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Every firing that is due with its event.

        A hook is not told which of several calls of its module it is for, so an event goes to the firing whose
        gradients it carries, by the table of tolerances or, at a second look, by what rounding explains; equal ones
        go to the latest call first, which backward meets first. What other modules' events tell of the backward pass
        in which one happened counts as well. Those that carry no firing's gradients go to what is left, in order.
        Events that answer in just that order are left in it: where gradients are so small that one may pass for
        another, no other order is told by them.
        """
        answers: dict[int, Event] = {}
        for path, firings in self.due.items():
            events = list(self.events.get(path, ()))
            left = sorted(firings, key=lambda firing: (firing.backward, -firing.node))
            looks = () if self._in_order(events, left) else (False, True) if self.measured else (False,)
            for measured in looks:
                for firing in left:
                    fitting = (event for event in events if self._carries(event, firing, measured))
                    match = next((event for event in fitting if firing.backward in self._passes[id(event)]), None)
                    if match is not None:
                        answers[id(firing)] = match
                        events.remove(match)
                left = [firing for firing in left if id(firing) not in answers]
            answers.update((id(firing), event) for firing, event in zip(left, events))
        return tuple(Pair(firing, answers.get(id(firing))) for firing in self.firings)

    @cached_property
    def due(self) -> dict[str, list[Firing]]:
        """The firings that are due on each module path that has any."""
        by_path: dict[str, list[Firing]] = {}
        for firing in self.firings:
            by_path.setdefault(firing.call.path, []).append(firing)
        return by_path

    @cached_property
    def _passes(self) -> dict[int, range]:
        """By an event's ``id`` the backward passes in which it may have happened: none before that of an event before
        it, none after that of one behind it, as far as their gradients tell. Where these contradict it may be any."""
        events = self.observed.events
        every = range(len(self.expected.trace.passes))
        numbers_of = [
            [firing.backward for firing in self.due.get(event.path, ()) if self._carries(event, firing, self.measured)]
            for event in events
        ]
        first = accumulate((min(numbers, default=0) for numbers in numbers_of), max)
        last = list(accumulate((max(numbers, default=every.stop) for numbers in reversed(numbers_of)), min))[::-1]
        return {id(event): range(a, b + 1) or every for event, a, b in zip(events, first, last)}

    def _in_order(self, events: list[Event], firings: list[Firing]) -> bool:
        """Whether there is nothing to choose, or each event carries the gradients of the firing in its place."""
        if len(firings) < 2:
            return True
        return len(events) == len(firings) and all(self._carries(e, f, self.measured) for e, f in zip(events, firings))

    def _carries(self, event: Event, firing: Firing, measured: bool) -> bool:
        return len(event.arguments) == len(self.sides) and all(
            isinstance(observed, tuple)
            and len(observed) == len(expected)
            and all(
                o is None
                if e is None or t is None or (o is None and i in unsure)
                else self._is(o, e, t.dtype, measured)
                for i, (o, e, t) in enumerate(zip(observed, expected, tensors))
            )
            for observed, (expected, tensors, unsure) in zip(event.arguments, map(firing.side, self.sides))
        )

    @cached_property
    def sides(self) -> tuple[str, ...]:
        """What the hook is called with, the module aside."""
        return ("grad_output",) if self.kind.call == BACKWARD_PRE else ("grad_input", "grad_output")

    def side(self, pair: Pair, name: str) -> Copy:
        """``grad_input`` or ``grad_output`` of an event; None where it has no such argument."""
        if pair.event is None or len(pair.event.arguments) != len(self.sides) or name not in self.sides:
            return None
        return pair.event.arguments[self.sides.index(name)]

    @cached_property
    def of_first_output(self) -> dict[str, list[Gradient]]:
        """For each module path, the gradients of first outputs that a hook on their grad_fn receives."""
        by_path: dict[str, list[Gradient]] = {}
        for due in self.expected.of_first_output:
            by_path.setdefault(due.call.path, []).append(due.gradient)
        return by_path

    @cached_property
    def as_nodes(self) -> dict[str, legacy.Answers]:
        """For each module that is called, what became of the calls of its legacy hook.

        In a pass through another one, each Node may run once whatever the oracle says.
        """
        due: dict[str, list[NodeCall]] = {call.path: [] for call in self.expected.trace.calls}
        for call in legacy.in_turn(self.expected.of_first_output, self.expected.trace.ended):
            due[call.call.path].append(call)
        # They outlive what is asked here: a case that they held would hold itself.
        alike = partial(_alike, self.expected)
        looks = [partial(alike, measured=measured) for measured in ((False, True) if self.measured else (False,))]
        trace, ended = self.expected.trace, self.observed.raised is not None
        answers = {}
        for path, calls in due.items():
            room = sum(call.path == path for call in trace.calls) * sum(backward.second for backward in trace.passes)
            answers[path] = legacy.answers(calls, self.events.get(path, ()), looks, room, ended)
        return answers

    def as_a_node(self, path: str | None) -> Features:
        """How the legacy hook of the module at ``path`` was called, or those of all modules: one of `legacy.WORDS`; of
        all modules also in which ``order``: ``of the Nodes`` or ``another``."""
        if self.kind.variant != "legacy":
            return {}
        if path is not None:
            return {"legacy": frozenset({self.as_nodes[path].word})}
        place = {id(event): i for i, event in enumerate(self.observed.events)}
        ordered = legacy.in_order(self.as_nodes.values(), place, self.expected.plain, self.expected.trace.ended)
        return {
            "legacy": frozenset(answers.word for answers in self.as_nodes.values()),
            "order": frozenset({"of the Nodes" if ordered else "another"}),
        }

    @cached_property
    def beside(self) -> Features:
        """At a second look, what identities ``boundaries`` of our own show beside the hook's: ``the same`` values and
        gradients, bit by bit, or ``others``."""
        if self.bounded is None:
            return {}
        alike = same(self.bounded.values, self.observed.values) and same(
            dict(self.bounded.gradients), dict(self.observed.gradients)
        )
        return {"boundaries": frozenset({"the same" if alike else "others"})}

    def carries_output(self, event: Event, gradient: Array) -> bool:
        """Whether the event's grad_output holds ``gradient``, of one of the outputs that the Node has."""
        outputs = event.arguments[1] if len(event.arguments) > 1 else None
        entries = outputs if isinstance(outputs, tuple) else ()
        return any(isinstance(entry, np.ndarray) and self.alike(entry, gradient) for entry in entries)

    @cached_property
    def new_warnings(self) -> tuple[tuple[str, str], ...]:
        """The warnings, each once, that the run without hooks does not give: category and text."""
        return tuple(w for w in dict.fromkeys(self.observed.warnings) if w not in self.plain.warnings)

    @cached_property
    def same_gradients(self) -> bool:
        """Whether the leaves end up with what they have without hooks, bit by bit."""
        return same(dict(self.observed.gradients), dict(self.plain.gradients))

    @cached_property
    def views(self) -> frozenset[str]:
        """The names in main of what comes out of a boundary as it is: there a full backward hook puts a view."""
        named = _named(self.expected.trace.names)
        return frozenset(name for name, tensor in named if tensor.node is not None and tensor.node.primitive is None)

    @cached_property
    def asked(self) -> frozenset[str]:
        """The names in main of the gradients that the program goes on with."""
        return _asked(self.topology)

    @cached_property
    def names(self) -> dict[int, tuple[str, ...]]:
        """Which gradient each entry of an observed tuple really is, by the tuple's ``id``; filled when asked for."""
        return {}

    @property
    def nodes_unspecified(self) -> bool:
        """Whether it is torch's own affair which Nodes a backward runs: one through a backward before it follows saved
        tensors, and one that is asked for an intermediate ends at one of several Nodes."""
        trace = self.expected.trace
        within = (isinstance(key, tuple) for backward in trace.passes for key in backward.wanted or ())
        return trace.doubled or any(within)

    def call_features(self, call: CallTrace) -> Features:
        """The features of a call, and those of the firings that are due on its module: clauses on calls count them."""
        due = self.due.get(call.path, ())
        return together([{"reached": frozenset()}, call_features(call), *map(firing_features, due)])

    @property
    def unordered(self) -> bool:
        """Whether a step may round differently from run to run, for want of a kernel that sums in one order."""
        return self.device != "cpu" and _unordered(self.topology)

    @property
    def opaque(self) -> bool:
        """Whether torch makes Nodes of its own for a step, of which nobody else knows how they lead to each other."""
        return any(node.opaque for node in self.expected.trace.nodes)

    @property
    def network_features(self) -> Features:
        """The features of the network as a whole, which all that is in it share; see `network_features`."""
        return network_features(self.expected)

    @property
    def features(self) -> Features:
        """What the run has about it; see `run_features`."""
        return run_features(self.expected)


def _alike(expected: Expected, observed: Array, array: Array, measured: bool) -> bool:
    return same(observed, array) or expected.close(numbers(observed), array, measured)


def _named(value: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """Every tensor in ``value``, by where it is, as the probe has it: ``y``, ``y[0]``, ``leaked[h]``."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, (tuple, list, dict, SimpleNamespace)):
        held = vars(value) if isinstance(value, SimpleNamespace) else value
        for key, item in held.items() if isinstance(held, dict) else enumerate(held):
            yield from _named(item, f"{name}[{key}]" if name else str(key))


@lru_cache(maxsize=256)
def _unordered(topology: Topology) -> bool:
    modules = [module for _, module in walk(topology.module)]
    ops = [s.op for s in statements(topology) if isinstance(s, Apply)]
    pads = any(getattr(module, "padding_mode", "zeros") in UNORDERED_PADDING for module in modules)
    return pads or any(type(step).__name__ in UNORDERED for step in (*modules, *ops))


@lru_cache(maxsize=256)
def _asked(topology: Topology) -> frozenset[str]:
    return frozenset(s.out for s in statements(topology) if isinstance(s, (Backward, Grad)) and s.out)
