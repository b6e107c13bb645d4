"""What does the oracle say, as Python literals? Every fact that the check of a clause holds torch against.

Modules are named as ``net.named_modules(prefix="net")`` names them, and parameters accordingly. Each fact is worked out
when a template first asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from hookcheck.oracle.expected import Expected, Firing
from hookcheck.oracle.sweep import Gradient
from hookcheck.oracle.tolerance import tolerance
from hookcheck.topology.model import Statement, Topology, Within
from hookcheck.topology.values import parameter_shapes, values


class Facts:
    """Everything that a script about one topology on one device may hold torch against."""

    def __init__(self, topology: Topology, device: str) -> None:
        """``device`` is ``cpu`` or ``cuda``; rounding differs."""
        self.topology = topology
        self.device = device
        self.expected = Expected(topology, values(topology))

    @cached_property
    def tolerance(self) -> float:
        """The largest difference that rounding explains where no number of a tensor is larger than 1."""
        return tolerance(np.zeros(1), self.expected.dtype, self.device)

    @cached_property
    def crowded(self) -> bool:
        """Whether on any module several calls of the hook are due, so that they must be told apart."""
        return any(count > 1 for _, count in self.counts)

    @cached_property
    def counts(self) -> list[tuple[str, int]]:
        """How many calls of the hook are due on each module that has any."""
        counts: dict[str, int] = {}
        for firing in self.expected.firings:
            path = named(firing.call.path)
            counts[path] = counts.get(path, 0) + 1
        return list(counts.items())

    def due(self, want: Callable[[Firing], Any]) -> list[tuple[Any, ...]]:
        """The calls of the hook of which a clause wants something: the module, and what is wanted.

        Where calls must be told apart, all of them are there, also those of which ``want`` gives None; and each has as
        a third entry (grad_input, grad_output) if its module has several.
        """
        if not self.crowded:
            rows = [(named(firing.call.path), want(firing)) for firing in self.expected.firings]
            return [row for row in rows if row[1] is not None]
        several = {path for path, count in self.counts if count > 1}
        return [
            (path, want(f), (numbers(f.grad_input), numbers(f.grad_output)) if path in several else None)
            for f in self.expected.firings
            for path in [named(f.call.path)]
        ]

    @cached_property
    def order(self) -> list[tuple[str, str]]:
        """Pairs of calls of the hook of which the graph demands that the first come first.

        A call is named by its module; where calls must be told apart, as `occasion` does.
        """
        firings = self.expected.firings
        names = {id(f): occasion(f) if self.crowded else named(f.call.path) for f in firings}
        return [
            (names[id(a)], names[id(b)])
            for b in firings
            for a in firings
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
        due = {path for path, _ in self.counts}
        called = (named(call.path) for call in self.expected.trace.calls if condition(call))
        return [path for path in dict.fromkeys(called) if path not in due]

    @cached_property
    def first_outputs(self) -> list[tuple[str, list[Any]]]:
        """For each module that is called, the gradients of its first output that a hook on its grad_fn receives."""
        found: dict[str, list[Any]] = {named(call.path): [] for call in self.expected.trace.calls}
        for call, _, gradient in self.expected.of_first_output:
            found[named(call.path)].append(None if gradient is None else gradient.tolist())
        return list(found.items())

    @cached_property
    def leaf_gradients(self) -> list[tuple[str, Any]]:
        """``.grad`` of every leaf that the formulas give one."""
        parameters = parameter_shapes(self.topology)
        return [
            (named(name) if name in parameters else name, gradient.tolist())
            for name, gradient in self.expected.leaf_gradients.items()
        ]

    @cached_property
    def values(self) -> list[str]:
        """The expressions of everything that main gives a name, and of what leaks into it."""
        leaks: Any = self.expected.trace.names["leaked"]
        return [*_outs(self.topology.main), *(f"leaked[{name!r}]" for name in leaks)]

    @cached_property
    def structured(self) -> bool:
        """Whether any of `values` is no tensor, but a container of them."""
        names = self.expected.trace.names
        leaks: Any = names["leaked"]
        found = [*(names[out] for out in _outs(self.topology.main)), *leaks.values()]
        return any(isinstance(value, (tuple, list, dict)) for value in found)


def named(path: str) -> str:
    """The name of the module or parameter at a dotted path below the root.

    >>> named("fc.weight"), named("")
    ('net.fc.weight', 'net')
    """
    return f"net.{path}" if path else "net"


def occasion(firing: Firing) -> str:
    """The name of one firing among all: module, call and backward."""
    return f"{firing.call.subject}, backward {firing.backward}"


def numbers(gradients: tuple[Gradient, ...]) -> tuple[Any, ...]:
    """Gradients as nested lists, None where one is absent."""
    return tuple(None if g is None else g.tolist() for g in gradients)


def _outs(body: tuple[Statement, ...]) -> list[str]:
    found: list[str] = []
    for statement in body:
        found += _outs(statement.body) if isinstance(statement, Within) else [getattr(statement, "out", "")]
    return [name for name in dict.fromkeys(found) if name]
