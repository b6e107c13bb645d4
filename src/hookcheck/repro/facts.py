"""What does the oracle say, as Python literals? Every fact that the check of a clause holds torch against.

Modules are named as ``net.named_modules(prefix="net")`` names them, and parameters accordingly. What is due, and where
a clause has no say, is asked of the contract's own `Case`, of a run that has not happened yet. Each fact is worked out
when a template first asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from hookcheck.contract.case import Case
from hookcheck.oracle.expected import Firing
from hookcheck.probe.kinds import HookKind
from hookcheck.probe.observation import Observation
from hookcheck.repro.gradients import Entry, gradients_of
from hookcheck.topology.model import Statement, Topology, Within
from hookcheck.topology.source import Source, source
from hookcheck.topology.values import parameter_shapes

Want = Callable[["Facts", Firing], Any]
"""What a clause wants of a call of the hook that is due, as a literal; None where it wants nothing."""

_UNSEEN = Observation((), {}, {}, {}, (), None)


class Facts:
    """Everything that a script about one topology, hook kind and device may hold torch against."""

    def __init__(self, topology: Topology, kind: HookKind, device: str) -> None:
        """``device`` is ``cpu`` or ``cuda``; rounding differs."""
        self.topology = topology
        self.gradients = gradients_of(topology, device)
        self.expected = self.gradients.expected
        self.case = Case(topology, kind, device, self.expected, _UNSEEN, _UNSEEN, measured=True)

    @cached_property
    def source(self) -> Source:
        """The network as PyTorch code."""
        return source(self.topology)

    @cached_property
    def firings(self) -> list[Firing]:
        """The calls of the hook that are due, in the order in which those that carry the same are told apart."""
        return sorted(self.case.firings, key=lambda firing: (firing.backward, -firing.node))

    @cached_property
    def crowded(self) -> bool:
        """Whether on any module several calls of the hook are due, so that they must be told apart."""
        return any(count > 1 for count in self.case.paths_due.values())

    @cached_property
    def counts(self) -> list[tuple[str, int, int]]:
        """How many calls of the hook are due on each module that has any: at least, and at most."""
        certain = dict.fromkeys(self.case.paths_due, 0)
        for firing in self.firings:
            certain[firing.call.path] += firing.certain
        return [(named(path), certain[path], count) for path, count in self.case.paths_due.items()]

    @cached_property
    def times(self) -> list[tuple[str, int, int]]:
        """`counts`, and the modules on which no call is due although an output requires grad."""
        calls = self.expected.trace.calls
        paths = dict.fromkeys(c.path for c in calls if any(t is not None and t.requires_grad for t in c.made))
        return [*self.counts, *((named(path), 0, 0) for path in paths if path not in self.case.paths_due)]

    def due(self, want: Want) -> list[tuple[Any, ...]]:
        """The calls of the hook of which a clause wants something: the module, and what is wanted.

        Where calls must be told apart, all of them are there, also those of which ``want`` gives None; and each has as
        a third entry (grad_input, grad_output) if its module has several.
        """
        if not self.crowded:
            rows = [(named(firing.call.path), want(self, firing)) for firing in self.firings]
            return [row for row in rows if row[1] is not None]
        return [
            (
                named(firing.call.path),
                want(self, firing),
                (self.grad_input(firing), self.grad_output(firing))
                if self.case.paths_due[firing.call.path] > 1
                else None,
            )
            for firing in self.firings
        ]

    def grad_input(self, firing: Firing) -> tuple[Entry, ...]:
        """The gradients that the hook is given first."""
        return tuple(
            self.gradients.entry(gradient, tensor.dtype if tensor else "")
            for gradient, tensor in zip(firing.grad_input, firing.call.args)
        )

    def grad_output(self, firing: Firing) -> tuple[Entry, ...]:
        """The gradients that the hook is given second."""
        return tuple(
            self.gradients.entry(gradient, tensor.dtype if tensor else "", i in firing.open)
            for i, (gradient, tensor) in enumerate(zip(firing.grad_output, firing.call.outputs))
        )

    @cached_property
    def unsure(self) -> bool:
        """Whether anywhere in grad_output None and a gradient are both right."""
        return any(firing.open for firing in self.firings)

    @cached_property
    def order(self) -> list[tuple[str, str]]:
        """Pairs of calls of the hook of which the graph demands that the first come first.

        A call is named by its module; where calls must be told apart, as `occasion` does.
        """
        names = {id(f): occasion(f) if self.crowded else named(f.call.path) for f in self.firings}
        return [
            (names[id(a)], names[id(b)])
            for b in self.firings
            for a in self.firings
            if a.backward < b.backward or (a.backward == b.backward and b.earlier >> a.node & 1)
        ]

    @cached_property
    def never(self) -> list[str]:
        """Modules that are called and of which no output requires grad, in no call for which the hook is due."""
        return self._called(lambda call: not any(t is not None and t.requires_grad for t in call.made))

    @cached_property
    def without_grad_mode(self) -> list[str]:
        """Modules that are called where grad mode is off, and for which the hook is not due."""
        return self._called(lambda call: call.mode != "grad")

    def _called(self, condition: Callable[[Any], bool]) -> list[str]:
        called = (call.path for call in self.expected.trace.calls if condition(call))
        return [named(path) for path in dict.fromkeys(called) if path not in self.case.paths_due]

    @cached_property
    def first_outputs(self) -> list[tuple[str, tuple[Entry, ...]]]:
        """For each module that is called, the gradients of its first output that a hook on its grad_fn receives.

        Modules of which only torch knows that Node are left out, and so are all where a backward has left a graph.
        """
        calls = [] if self.case.winding else self.expected.trace.calls
        return [
            (named(path), tuple(self.gradients.entry(g, dtype) for g, dtype in due))
            for path in dict.fromkeys(call.path for call in calls)
            for due in [[(g, c.first.dtype) for c, _, g in self.expected.of_first_output if c.first and c.path == path]]
            if path not in self.case.overwritten and all(g is not None for g, _ in due)
        ]

    @cached_property
    def leaf_gradients(self) -> list[tuple[str, Entry]]:
        """``.grad`` of every leaf that the formulas give one."""
        parameters, leaves = parameter_shapes(self.topology), self.expected.trace.leaves
        return [
            (named(name) if name in parameters else name, self.gradients.entry(gradient, leaves[name].dtype))
            for name, gradient in self.expected.leaf_gradients.items()
        ]

    @cached_property
    def values(self) -> list[str]:
        """The expressions of everything that main gives a name, and of what leaks into it."""
        leaks: Any = self.expected.trace.names["leaked"]
        return [*_outs(self.topology.main), *(f"leaked[{name!r}]" for name in leaks)]

    @cached_property
    def containers(self) -> frozenset[str]:
        """Which sorts of containers `values` holds: ``dict``, ``tuple`` (lists are of that sort), ``dataclass``."""
        names = self.expected.trace.names
        leaks: Any = names["leaked"]
        return frozenset(_containers([names[out] for out in _outs(self.topology.main)] + list(leaks.values()))[1:])


def named(path: str) -> str:
    """The name of the module or parameter at a dotted path below the root.

    >>> named("fc.weight"), named("")
    ('net.fc.weight', 'net')
    """
    return f"net.{path}" if path else "net"


def occasion(firing: Firing) -> str:
    """The name of one firing among all: module, call and backward."""
    return f"{firing.call.subject}, backward {firing.backward}"


def _containers(value: Any) -> list[str]:
    """The sort of container that ``value`` is, if it is one, and then those of what it holds."""
    if isinstance(value, dict):
        return ["dict", *(sort for item in value.values() for sort in _containers(item))]
    if isinstance(value, (tuple, list)):
        return ["tuple", *(sort for item in value for sort in _containers(item))]
    return ["dataclass", *_containers(vars(value))[1:]] if isinstance(value, SimpleNamespace) else []


def _outs(body: tuple[Statement, ...]) -> list[str]:
    found: list[str] = []
    for statement in body:
        found += _outs(statement.body) if isinstance(statement, Within) else [getattr(statement, "out", "")]
    return [name for name in dict.fromkeys(found) if name]
