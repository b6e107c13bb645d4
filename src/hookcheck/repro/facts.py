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

from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import FORWARD_PRE, OUTPUT, POST_ACCUMULATE, RETAINED, HookKind
from hookcheck.networks.case import Case
from hookcheck.oracle.expected import Firing, TensorCall
from hookcheck.oracle.graph import Tensor, newest
from hookcheck.probe.observation import Observation
from hookcheck.repro.gradients import Entry, gradients_of
from hookcheck.repro.last_nodes import Row, rows
from hookcheck.topology.model import Statement, Topology, Within
from hookcheck.topology.source import Source, source
from hookcheck.topology.values import parameter_shapes

Want = Callable[["Facts", Firing], Any]
"""What a clause wants of a call of the hook that is due, as a literal; None where it wants nothing."""

Value = Any
"""A tensor as a dict with its ``numbers`` (see `Entry`); a tuple or list of values; a dict of ``items``, for a dict, or
of ``fields``, for a namedtuple or dataclass; None, and ``...`` for anything; the ``repr`` of all else."""

_UNSEEN = Observation((), {}, {}, {}, (), None)


class Facts:
    """Everything that a script about one topology, hook kind and device may hold torch against."""

    def __init__(self, topology: Topology, kind: HookKind, device: str) -> None:
        """``device`` is ``cpu`` or ``cuda``; rounding differs."""
        self.topology = topology
        self.kind = kind
        self.gradients = gradients_of(topology, device, kind.acts)
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
        return any(len(firings) > 1 for firings in self.case.due.values())

    @cached_property
    def counts(self) -> list[tuple[str, int, int]]:
        """How many calls of the hook are due on each module that has any: at least, and at most."""
        certain = dict.fromkeys(self.case.due, 0)
        for firing in self.firings:
            certain[firing.call.path] += firing.certain
        return [(named(path), certain[path], len(firings)) for path, firings in self.case.due.items()]

    @cached_property
    def times(self) -> list[tuple[str, int, int]]:
        """`counts`, and the modules on which no call is due although an output requires grad."""
        calls = self.expected.trace.calls
        paths = dict.fromkeys(c.path for c in calls if any(t is not None and t.requires_grad for t in c.made))
        return [*self.counts, *((named(path), 0, 0) for path in paths if path not in self.case.due)]

    def due(self, want: Want) -> list[tuple[Any, ...]]:
        """The calls of the hook of which a clause wants something: the module, and what is wanted.

        Where calls must be told apart, all of them are there, also those of which ``want`` gives None; and each has as
        a third entry, (grad_input, grad_output) or what the hook is told of them, if its module has several.
        """
        if not self.crowded:
            rows = [(named(firing.call.path), want(self, firing)) for firing in self.firings]
            return [row for row in rows if row[1] is not None]
        return [
            (
                named(firing.call.path),
                want(self, firing),
                tuple(getattr(self, side)(firing) for side in self.case.sides)
                if len(self.case.due[firing.call.path]) > 1
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
        return [named(path) for path in dict.fromkeys(called) if path not in self.case.due]

    @cached_property
    def first_outputs(self) -> list[tuple[str, tuple[Entry, ...]]]:
        """For each module that is called, the gradients of its first output that a hook on its grad_fn receives.

        Modules of which only torch knows that Node are left out, and so are all where a backward has left a graph.
        """
        calls = [] if self.case.winding else self.expected.trace.calls
        firsts = self.expected.of_first_output
        return [
            (named(path), tuple(self.gradients.entry(g, dtype) for g, dtype in due))
            for path in dict.fromkeys(call.path for call in calls)
            for due in [[(d.gradient, d.call.first.dtype) for d in firsts if d.call.first and d.call.path == path]]
            if path not in self.case.overwritten and all(g is not None for g, _ in due)
        ]

    @cached_property
    def node_calls(self) -> list[Row]:
        """For each module that is called, the calls of a hook on the Node of its first output; see `Row`."""
        if self.case.device != "cpu":
            return []
        return [(named(path), room, calls) for path, room, calls in rows(self.case, self.gradients)]

    @cached_property
    def leaf_gradients(self) -> list[tuple[str, Entry]]:
        """``.grad`` of every leaf that the formulas give one; None is as good as zeros under a hook that acts."""
        leaves = self.expected.trace.leaves
        return [
            (
                self._leaf(name),
                self.gradients.entry(gradient, leaves[name].dtype, not self.kind.observes and not gradient.any()),
            )
            for name, gradient in self.expected.leaf_gradients.items()
        ]

    def _leaf(self, name: str) -> str:
        return named(name) if name in parameter_shapes(self.topology) else name

    @cached_property
    def in_turn(self) -> list[tuple[str, tuple[Entry, ...]]]:
        """For each leaf what its hook is to be given, one backward pass after the other."""
        post = self.kind.call == POST_ACCUMULATE
        calls = self.expected.accumulations if post else self.expected.leaf_calls
        dtypes = {name: leaf.dtype for name, leaf in self.expected.trace.leaves.items()}
        return [
            (self._leaf(name), tuple(self.gradients.entry(c.gradient, dtypes[name]) for c in calls if c.name == name))
            for name in dict.fromkeys(call.name for call in calls)
        ]

    @cached_property
    def output_gradients(self) -> list[tuple[str, tuple[Entry, ...]]]:
        """For each output of a module that has a step of its own, the gradients that hooks on it or its Node receive,
        or that it retains.

        Those of which only torch knows are told by `unsaid`.
        """
        dtypes: dict[str, set[str]] = {}
        for call in self.expected.trace.calls:
            for position, made in enumerate(call.made):
                if made is not None:
                    dtypes.setdefault(f"{call.path}[{position}]", set()).add(made.dtype)
        found: dict[str, tuple[Entry, ...]] = {}
        for due in self._on_outputs:
            if due.name in self.unsaid or due.name.rpartition("[")[0] in self.case.overwritten:
                continue
            if len(dtypes[due.name]) > 1:
                raise HookcheckError(
                    "no script can be written yet where an output has one dtype here and another there"
                )
            (dtype,) = dtypes[due.name]
            found[due.name] = (*found.get(due.name, ()), self.gradients.entry(due.gradient, dtype))
        return [(_place(name), entries) for name, entries in found.items()]

    @cached_property
    def unsaid(self) -> frozenset[str]:
        """The outputs of modules of which a gradient is not known."""
        return frozenset(call.name for call in self._on_outputs if call.unknown)

    @property
    def _on_outputs(self) -> tuple[TensorCall, ...]:
        """What is due on the outputs of modules: to a hook on each, on its Node, or in ``.grad`` in the end."""
        if self.kind.call == RETAINED:
            return self.expected.retained
        calls = self.expected.output_calls
        return calls if self.kind.call == OUTPUT else tuple(call for call in calls if not call.leaf)

    @property
    def asks(self) -> bool:
        """Whether a backward pass is asked for gradients, and so fills no ``.grad``."""
        return any(not backward.accumulates for backward in self.expected.trace.passes)

    @property
    def differentiable(self) -> bool:
        """Whether any step is recorded for backward."""
        return any(node.primitive is not None for node in self.expected.trace.nodes)

    @cached_property
    def at_once(self) -> list[dict[str, Entry]]:
        """For each backward pass that computes the gradient of any leaf, those of all that have one."""
        found: dict[int, dict[str, Entry]] = {}
        for call in self.expected.leaf_calls:
            dtype = self.expected.trace.leaves[call.name].dtype
            found.setdefault(call.backward, {})[self._leaf(call.name)] = self.gradients.entry(call.gradient, dtype)
        return list(found.values())

    @cached_property
    def skipped(self) -> list[str]:
        """The outputs of modules that Tensor hooks are put on and that the clause on those does not speak of."""
        calls = self.expected.trace.calls
        names = (f"{call.path}[{i}]" for call in calls for i in range(len(call.made)))
        overwritten = self.case.overwritten
        skipped = (n for n in names if n in self.unsaid or n.rpartition("[")[0] in overwritten)
        return list(dict.fromkeys(map(_place, skipped)))

    @cached_property
    def calls(self) -> list[tuple[str, Value, Value, Value]]:
        """The calls of modules in the order in which forward hooks are due, each with its positional arguments, its
        keyword arguments and its output, as they are when the hook is called."""
        before, trace = self.kind.call == FORWARD_PRE, self.expected.trace
        return [
            (named(call.path), self.value(args), self.value(dict(kwargs)), None if before else self.value(call.result))
            for call in (trace.calls if before else trace.ended)
            for args, kwargs in [(call.given, call.keywords) if before else call.left]
        ]

    @cached_property
    def results(self) -> list[tuple[str, Value]]:
        """What main gives a name, where that is a tensor or a container, and what leaks into it."""
        names: Any = newest(dict(self.expected.trace.names))
        found = [(out, names[out]) for out in _outs(self.topology.main)]
        found += [(f"leaked[{name!r}]", value) for name, value in names["leaked"].items()]
        sorts = (Tensor, tuple, list, dict, SimpleNamespace)
        unsure = self.case.asked if not self.case.kind.observes else frozenset()
        return [(name, self.value(value, name in unsure)) for name, value in found if isinstance(value, sorts)]

    def value(self, value: Any, or_none: bool = False) -> Value:
        """What the oracle says of a value, as a literal; ``or_none`` says that None is as right as zeros."""
        if isinstance(value, Tensor):
            entry = self.gradients.entry(value.array, value.dtype, or_none and not value.array.any())
            return entry if isinstance(entry, dict) else {"numbers": entry}
        if isinstance(value, SimpleNamespace):
            return {"fields": [self.value(item) for item in vars(value).values()]}
        if hasattr(value, "_fields"):
            return {"fields": list(map(self.value, value))}
        if isinstance(value, dict):
            return {"items": {key: self.value(item) for key, item in value.items()}}
        if isinstance(value, (tuple, list)):
            items = [self.value(item, or_none) for item in value]
            return items if isinstance(value, list) else tuple(items)
        return value if value is None or value is Ellipsis else repr(value)

    @cached_property
    def values(self) -> list[str]:
        """The expressions of everything that main gives a name, after what leaked to it: an object that is
        both goes by what it leaked as, also where a full backward hook puts a view in the place of the other."""
        leaks: Any = self.expected.trace.names["leaked"]
        return [*(f"leaked[{name!r}]" for name in leaks), *_outs(self.topology.main)]

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


def _place(name: str) -> str:
    path, _, position = name.rpartition("[")
    return f"{named(path)}[{position}"


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
