"""Cases made by hand: what torch did is written down, not run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAUSES, Clause
from hookcheck.contract.explaining import explained
from hookcheck.contract.ledger import Ledger
from hookcheck.contract.verdict import Deviation
from hookcheck.hooks.kinds import (
    BACKWARD_PRE,
    FORWARD,
    FORWARD_PRE,
    KINDS,
    MULTI_GRAD,
    NODE,
    NODE_PRE,
    OUTPUT,
    POST_ACCUMULATE,
    RETAINED,
    SAVED,
    TENSOR,
    HookKind,
)
from hookcheck.networks.case import Case
from hookcheck.networks.judge import judge
from hookcheck.oracle.expected import Expected
from hookcheck.oracle.graph import Tensor, newest
from hookcheck.probe.observation import Event, Observation, Raised
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Apply, Backward, Call, Composite, Input, Module, Statement, Topology, Within
from hookcheck.topology.ops import Add
from hookcheck.topology.ops.inplace import AddInplace
from hookcheck.topology.tree import Literal, Pack, Ref, Tree
from hookcheck.topology.values import parameter_shapes

TIMES = Linear(1, 1, bias=False)
X, Y, V, H = Ref("x"), Ref("y"), Ref("v"), Ref("h")
CALLED = Call("y", "", (X,))
FROM_Y = Backward((Y,), (V,))


def net(*body: Statement, gives: Tree = H, takes: tuple[str, ...] = ("x",)) -> Composite:
    return Composite((("a", TIMES), ("b", TIMES)), takes, body, gives)


CHAIN = net(Call("g", "a", (X,)), Call("h", "b", (Ref("g"),)))
"""``h = b · a · x``."""
TWICE = net(Call("g", "a", (X,)), Call("h", "a", (Ref("g"),)))
WITH_LITERALS = (
    net(Call("h", "a", (X,)), gives=Pack("tuple", (H, Literal(None))), takes=("flag", "x")),
    (Call("y", "", (Literal(True), X)), Backward((Ref("y", (0,)),), (V,))),
)
UNDER_NO_GRAD = (Within("no_grad", (CALLED,)),)
WRITE = (Apply("z", AddInplace(), (Y, X)), Backward((Ref("z"),), (V,)))
"""Writes to the module's output in place, and a backward behind that."""
TWO = net(Call("h", "a", (X,)), Call("z", "b", (X,)), gives=Pack("tuple", (H, Ref("z"))))
"""``(a · x, b · x)``."""
AROUND_TWO = (
    Composite((("two", TWO),), ("x",), (Call("p", "two", (X,)),), Pack("tuple", (Ref("p", (0,)), Ref("p", (1,))))),
    (CALLED, Backward((Ref("y", (0,)),), (V,))),
)
"""A module that hands on both outputs of another, of which the loss uses the first."""
EQUAL = net(Call("g", "a", (X,)), Call("h", "a", (X,)), Apply("s", Add(), (Ref("g"), H)), gives=Ref("s"))
"""``a · x + a · x``: both calls of ``a`` have the same gradients."""


def case(
    module: Module = TIMES,
    main: tuple[Statement, ...] = (CALLED, FROM_Y),
    kind: str = "full_backward",
    grad: str = "x",
    frozen: tuple[str, ...] = (),
    device: str = "cpu",
) -> Case:
    """``module`` with weights 2 and 3 called on 5, its gradient 7; what was observed is all that is promised."""
    topology = Topology(module, tuple(Input(n, (1,), n == grad) for n in ("x", "v")), main, frozen=frozen)
    numbers = {name: np.array([[3.0 if name == "b.weight" else 2.0]]) for name in parameter_shapes(topology)}
    numbers.update(x=np.array([5.0]), v=np.array([7.0]))
    expected = Expected(topology, numbers, acts=KINDS[kind].acts, device=device)
    leaves = {name: expected.leaf_gradients.get(name) for name in numbers}
    values = {name: copied(newest(value)) for name, value in expected.trace.names.items() if name in ("y", "z")}
    plain = Observation((), values, dict.fromkeys(values, True), leaves, (), None)
    counts: dict[str, int] = {}
    events = []
    for path, given, arguments in due_events(expected, KINDS[kind]):
        counts[path] = counts.get(path, -1) + 1
        events.append(Event(kind, path, counts[path], given, arguments))
    chained = [(link, passed_on(event, link)) for event in events for link in range(3) if KINDS[kind].then]
    observed = replace(plain, events=tuple(events), chained=tuple(chained))
    return Case(topology, KINDS[kind], device, expected, observed, plain)


def passed_on(event: Event, link: int) -> Event:
    """What the hooks of a chain are told one after the other, where it is about one tensor: scaled as those before
    have scaled it."""
    acts = KINDS[event.kind].acts
    by = ((1, 2, 8) if acts.backward else (1, 0.5, 2))[link]
    if acts.outputs:
        args, output = event.arguments
        return event._replace(arguments=(args, output * by))
    ((given,), *rest) = event.arguments
    return event._replace(arguments=((given * by,), *rest))


def due_events(expected: Expected, kind: HookKind) -> Iterator[tuple[str, str | None, tuple[Any, ...]]]:
    """Everything that a hook is to be told, in an order that the graph allows: path, module given, and arguments."""
    if kind.call in (FORWARD_PRE, FORWARD):
        for call in expected.trace.calls if kind.call == FORWARD_PRE else expected.trace.ended:
            keywords = ({key: copied(value) for key, value in call.keywords.items()},) if kind.kwargs else ()
            output = (copied(call.result),) if kind.call == FORWARD else ()
            yield call.path, call.path, (copied(call.given), *keywords, *output)
    elif kind.backward:
        for firing in ordered(expected, kind):
            sides = (firing.grad_output,) if kind.call == BACKWARD_PRE else (firing.grad_input, firing.grad_output)
            yield firing.call.path, firing.call.path, sides
    elif kind.call == MULTI_GRAD:
        for backward in range(len(expected.trace.passes)):
            yield "", None, ({c.name: c.gradient for c in expected.leaf_calls if c.backward == backward},)
    elif kind.call == SAVED:
        yield from (("pack", None, ("0",)), ("pack", None, ("1",)), ("unpack", None, ("1",)))
    else:
        node_calls = [call for call in expected.output_calls if not call.leaf]
        calls = {
            TENSOR: expected.leaf_calls,
            POST_ACCUMULATE: expected.accumulations,
            OUTPUT: expected.output_calls,
            NODE: node_calls,
            NODE_PRE: node_calls,
            RETAINED: expected.retained,
        }
        for heard in calls[kind.call]:
            yield heard.name, None, (heard.gradient,)


def copied(value: Any) -> Any:
    """What a probe keeps of a value that the oracle gives."""
    if isinstance(value, tuple):
        return tuple(map(copied, value))
    return value.array if isinstance(value, Tensor) else value


def ordered(expected: Expected, kind: HookKind) -> list[Any]:
    """The firings in an order that the graph allows."""
    firings = expected.pre_firings if kind.call == BACKWARD_PRE else expected.firings
    return sorted(firings, key=lambda f: (f.backward, bin(f.earlier).count("1")))


def with_events(case: Case, *events: Event) -> Case:
    return again(case, events=events)


def with_gradients(case: Case, grad_input: Any, grad_output: Any = ..., place: int = 0) -> Case:
    """``case`` with other arguments of its event number ``place``; ``...`` keeps what was there."""
    event = case.observed.events[place]
    given = tuple(old if new is ... else new for old, new in zip(event.arguments, (grad_input, grad_output)))
    return changed(case, place, arguments=given)


def changed(case: Case, place: int = 0, **changes: Any) -> Case:
    """``case`` with changes to its event number ``place``."""
    events = list(case.observed.events)
    events[place] = events[place]._replace(**changes)
    return again(case, events=tuple(events))


def again(case: Case, plain: dict[str, Any] | None = None, **changes: Any) -> Case:
    """``case`` with changes to what was observed, with hooks and (``plain``) without."""
    return replace(case, observed=replace(case.observed, **changes), plain=replace(case.plain, **(plain or {})))


def raising(case: Case, type: str = "RuntimeError", events: tuple[Event, ...] = (), text: str = "no such luck") -> Case:
    return again(case, events=events, raised=Raised(type, text))


def numbers(*values: float | None) -> tuple[Any, ...]:
    """A tuple of gradients."""
    return tuple(None if v is None else np.array([float(v)]) for v in values)


def deviations(case: Case, *ids: str) -> list[Deviation]:
    """What the clauses (all of them if none is named) find to deviate."""
    findings = judge(case, _spoken(case, ids or CLAUSES)).findings
    return list(explained(case.topology, "by-hand", case.kind.name, findings, Ledger(())))


def _spoken(case: Case, ids: Iterable[str]) -> list[Clause]:
    return [CLAUSES[id] for id in ids if case.kind.name in CLAUSES[id].kinds]


def gaps(case: Case, *ids: str) -> Iterable[tuple[str, str]]:
    """Clause and gap of every deviation."""
    return [(d.clause, d.gap) for d in deviations(case, *ids)]


def judged(case: Case, id: str) -> int:
    """How many subjects the clause has a say on."""
    return judge(case, _spoken(case, [id])).judged.get(id, 0)


def unjudged(case: Case, id: str) -> int:
    """Of how many subjects it cannot be foretold what is right."""
    return judge(case, _spoken(case, [id])).unjudged.get(id, 0)
