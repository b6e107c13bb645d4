"""Is the legacy hook called as what it really is, a hook on the Node that made the first output of its module?

Which call of the hook is for which run of the Node it is not told, so each goes to a run whose gradients it carries.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from hookcheck.oracle.gradient import Gradient
from hookcheck.oracle.graph import CallTrace, Node, Tensor
from hookcheck.oracle.last_node import NodeCall, maker
from hookcheck.oracle.sweep import Sweep
from hookcheck.probe.observation import Copy, Event, dtype_of
from hookcheck.topology.primitive import Array

Alike = Callable[[Array, Array], bool]
"""Whether the numbers that torch gave are those that the oracle gives."""

AS_THE_NODE, BUT_FOR_NUMBERS = "as the Node", "as the Node but for numbers"
OTHERWISE, NOT_JUDGED = "otherwise", "not judged"
WORDS = (AS_THE_NODE, BUT_FOR_NUMBERS, OTHERWISE, NOT_JUDGED)
"""How the hook of a module was called: as a hook on the Node is; with as many gradients of such shapes, some of which
have other numbers; otherwise; or in a way that nobody can foretell."""


@dataclass(frozen=True, eq=False)
class Answers:
    """What became of the calls that are due on one module: ``due`` with the event that answers each, or None where
    none does, and the events that are ``left``.

    ``room`` is how many more may have come, for all that anybody knows; ``ended`` says that the run did so early.
    """

    due: tuple[tuple[NodeCall, Event | None], ...]
    left: tuple[Event, ...]
    room: int
    ended: bool
    alike: Alike

    @cached_property
    def wrong(self) -> tuple[NodeCall, Event | None] | None:
        """The first call of which it is known what it is to be, and which is not that."""
        for call, event in self.due:
            missing = call.certain and not self.ended
            if call.known and (missing if event is None else not fits(call, event, self.alike)):
                return call, event
        return None

    @property
    def word(self) -> str:
        """One of `WORDS`."""
        if len(self.left) > self.room:
            return OTHERWISE
        if self.wrong:
            given = ((call, event) for call, event in self.due if call.known)
            alike = all(event is not None and fits(call, event, _shaped) for call, event in given)
            return BUT_FOR_NUMBERS if alike else OTHERWISE
        answered = all(call.known and event is not None for call, event in self.due)
        return AS_THE_NODE if answered and not self.left else NOT_JUDGED


def answers(
    calls: Sequence[NodeCall], events: Iterable[Event], looks: Sequence[Alike], room: int, ended: bool
) -> Answers:
    """Gives each call an event: one with all that it is to have, by the first of the ``looks`` that tells it; then one
    with the output's gradient; then one whose gradients have such shapes; then, of those that are not known, any that
    is left.

    In passes through others there is ``room`` for so many calls.
    """
    left = list(events)
    events_of: dict[int, Event] = {}
    certain = [call for call in calls if call.certain]
    stages = [*product([fits], looks, [calls]), *product([carries], looks, [certain]), (fits, _shaped, certain)]
    for test, look, candidates in (*stages, (_takes_any, looks[-1], calls)):
        for call in candidates:
            event = None if id(call) in events_of else next((event for event in left if test(call, event, look)), None)
            if event is not None:
                events_of[id(call)] = event
                left.remove(event)
    due = tuple((call, events_of.get(id(call))) for call in calls)
    taken = sum(not call.certain and event is not None for call, event in due)
    return Answers(due, tuple(left), max(0, room - taken), ended, looks[-1])


def in_turn(calls: Iterable[NodeCall], ended: Sequence[CallTrace]) -> list[NodeCall]:
    """The calls as they come where nothing but the order in which Nodes were made decides: the latest Node first, and
    hooks on one Node in the order in which they were put there, which is that of ``ended``, the calls' ends."""
    ends = {id(call): number for number, call in enumerate(ended)}
    return sorted(calls, key=lambda due: (due.backward, -_step(_first_output(due)).index, ends[id(due.call)]))


def in_order(
    modules: Iterable[Answers], place: Mapping[int, int], sweeps: Sequence[Sweep], ended: Sequence[CallTrace]
) -> bool:
    """Whether the calls that are known came as the Nodes ran: no Node before one that must run before it, and hooks on
    one Node as `in_turn` has it; outputs of one step that have Nodes of their own as these lead to each other.

    ``place`` says which event came when, by its ``id``; ``sweeps`` are the passes without boundaries.
    """
    answered = [(call, event) for answers in modules for call, event in answers.due if call.known and event is not None]
    happened = [call for call, event in sorted(answered, key=lambda one: place[id(one[1])])]
    ends = {id(call): number for number, call in enumerate(ended)}
    return not any(
        _comes_before(later, former, sweeps, ends) for i, former in enumerate(happened) for later in happened[i + 1 :]
    )


def _comes_before(one: NodeCall, other: NodeCall, sweeps: Sequence[Sweep], ends: Mapping[int, int]) -> bool:
    """Whether the hook of ``one`` must be called before that of ``other``."""
    if one.backward != other.backward:
        return one.backward < other.backward
    mine, its = _first_output(one), _first_output(other)
    if _step(mine) is not _step(its):
        return bool(sweeps[one.backward].earlier[_step(its).index] >> _step(mine).index & 1)
    if mine.slot == its.slot or one.outputs > 1:
        return ends[id(one.call)] < ends[id(other.call)]
    primitive = _step(mine).primitive
    assert primitive is not None
    return not primitive.separate and mine.slot < its.slot  # an output is made of those after it


def _first_output(due: NodeCall) -> Tensor:
    """The first output, as the step gave it whose Node it has."""
    assert due.call.first is not None
    return maker(due.call.first)


def _step(tensor: Tensor) -> Node:
    """The step that gave it."""
    assert tensor.node is not None
    return tensor.node


def carries(call: NodeCall, event: Event, alike: Alike) -> bool:
    """Whether grad_output has an entry for each output of the Node, and the first output's gradient in its place."""
    outputs = event.arguments[1] if len(event.arguments) > 1 else None
    if not isinstance(outputs, tuple) or len(outputs) != call.outputs:
        return False
    given = outputs[call.slot]
    return given is None if call.absent else _same(given, call.gradient, alike, {call.dtype})


def fits(call: NodeCall, event: Event, alike: Alike) -> bool:
    """Whether it carries that, and grad_input is what the Node hands on."""
    grad_input = event.arguments[0] if event.arguments else None
    return carries(call, event, alike) and any(
        isinstance(grad_input, tuple)
        and len(grad_input) == len(form)
        and all(o is None if e is None else _same(o, e, alike, call.dtypes) for o, e in zip(grad_input, form))
        for form in call.forms
    )


def _shaped(observed: Array, expected: Array) -> bool:
    return bool(observed.shape == expected.shape)


def _takes_any(call: NodeCall, event: Event, alike: Alike) -> bool:
    return not call.known


def _same(observed: Copy, expected: Gradient, alike: Alike, dtypes: Collection[str]) -> bool:
    tensor = expected is not None and isinstance(observed, np.ndarray) and dtype_of(observed) in dtypes
    return tensor and alike(observed, expected)  # type: ignore[arg-type]
