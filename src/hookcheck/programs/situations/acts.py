"""What happens in a situation? Acts as plain data, and the situation that lists them: one choice on each axis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Union

from hookcheck.programs.situations.sites import SITES


@dataclass(frozen=True)
class Register:
    """Registers the hook of that name on a site, before those that are there if it is ``first``."""

    hook: str
    site: str
    first: bool = False


@dataclass(frozen=True)
class Trouble:
    """What a hook, a body or a closure does when it is called next: one of `TROUBLES`, or `BODY`; to which ``other``
    hook.

    A hook removes others in a ``way`` of `REMOVALS`, and registers another before those that are there if it is
    ``first``.
    """

    what: str
    hook: str = "a"
    other: str = "b"
    way: str = "remove"
    first: bool = False


@dataclass(frozen=True)
class Remove:
    """Removes a hook in one of `REMOVALS`."""

    hook: str
    way: str = "remove"


@dataclass(frozen=True)
class Alter:
    """Does to net, input or what was called what must not concern hooks: one of `BEFORE` or of `BETWEEN`."""

    what: str


@dataclass(frozen=True)
class Trigger:
    """What calls hooks: one of `EVENTS`; a backward in one of `BACKWARDS`, a forward by one of `CALLS`."""

    what: str
    way: str = "backward"
    call: str = ""


@dataclass(frozen=True)
class Enter:
    """Has all events that follow run in these contexts, the ``inner`` one within the ``outer``; if ``wholly``,
    registering and removing hooks as well."""

    outer: str = ""
    inner: str = ""
    wholly: bool = False


@dataclass(frozen=True)
class Leave:
    """Lets go of the graph and of what was registered: nothing must hold a hook then."""


Act = Union[Register, Trouble, Remove, Alter, Trigger, Enter, Leave]

TROUBLES = (
    "", "removes itself", "removes another", "another removes it", "removes its partner", "registers another",
    "raises", "interrupts", "the body raises", "the body interrupts", "the closure raises",
)  # fmt: skip
REMOVING = TROUBLES[1:5]
"""Of these the ones that remove a hook while hooks are called."""
CHANGING = TROUBLES[1:6]
"""Of these the ones that change a table of hooks meanwhile."""
BODY = "the body registers another"
"""What is no choice of a situation: a body registers another hook where that of the act is (see `chains`)."""
REGISTERING = ("registers another", BODY)
"""What brings another hook about."""
RAISING = TROUBLES[6:]
"""Of these the ones that raise, hooks first."""

BEFORE = (
    "", "collect", "eval", "freeze and thaw", "load", "assign", "deepcopy", "deepcopy with handles", "pickle",
    "pickle with handles", "shallow copy", "double and back", "new data", "set_", "share memory", "apply",
    "half a call",
)  # fmt: skip
BETWEEN = (
    "", "add", "remove", "collect", "eval", "new data", "another call", "copy", "assign", "clear gradients",
    "write to output", "write to input", "freeze and thaw", "freeze", "thaw", "cast", "set_", "move",
    "double the output", "write to what is saved",
)  # fmt: skip
UNDONE = {"freeze": "thaw", "cast": "cast back"}
"""Of these the ones that are undone after the backward, each with what undoes it."""
REMOVALS = ("remove", "twice", "with", "copied handle", "around a call", "around an error")
AROUND = REMOVALS[4:]
"""Of these the ones in which something is done in the context of the handle, at whose end the hook goes."""
EVENTS = ("attach", "forward", "backward", "step", "save", "load", "save optimizer", "load optimizer")
BACKWARDS = ("backward", "grad", "inputs", "twice", "thread")
CALLS = ("", "functional_call", "checkpoint", "in a thread", "no_grad", "inference_mode")
GRADLESS = CALLS[4:]
"""Of these the ones whose results have no graph."""


@dataclass(frozen=True)
class Situation:
    """A choice on each axis: where the hook ``a`` is, with which neighbours, and all that it meets.

    Of its neighbours ``b`` is on the same site, ``first`` or last, as is what ``a`` registers, and ``c`` is on another.
    The ``trouble`` comes once; in all that follows each event must have its hooks called again. Hooks are removed in
    one way, by hooks too. The last of three calls is a plain one, whatever the others are.
    """

    site: str
    partner: str = ""
    first: bool = False
    trouble: str = ""
    before: str = ""
    between: str = ""
    removal: str = "remove"
    backward: str = "backward"
    call: str = ""
    outer: str = ""
    inner: str = ""
    host: str = "plain"
    optimizer: str = "SGD"
    input: str = "plain"

    @property
    def features(self) -> dict[str, frozenset[str]]:
        """The choices by axis, for the ledger to name."""
        plain = ("trouble", "before", "between", "backward", "call", "host", "optimizer", "input")
        return {
            "site": frozenset({self.site}),
            "sites": frozenset({self.site, self.partner}),
            "lane": frozenset({SITES[self.site].lane}),
            "context": frozenset({self.outer, self.inner}),
            **{axis: frozenset({getattr(self, axis)}) for axis in plain},
        }

    @property
    def name(self) -> str:
        """All that is not as simple as it can be."""
        chosen = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        words = [axis if value is True else f"{axis} {value}" for axis, value in chosen.items() if axis != "site"]
        return "; ".join([self.site, *words])


def trouble(situation: Situation) -> Trouble:
    """What ``a`` does, to ``b`` or to ``c`` where it does it to another, or ``b`` does to it."""
    removal, first = situation.removal, situation.first
    if situation.trouble == "removes its partner":
        return Trouble("removes another", other="c", way=removal)
    if situation.trouble == "another removes it":
        return Trouble("removes another", hook="b", other="a", way=removal)
    if situation.trouble == "registers another":
        return Trouble(situation.trouble, other="d", first=first)
    return Trouble(situation.trouble, way=removal) if situation.trouble in REMOVING else Trouble(situation.trouble)


def acts(situation: Situation) -> Iterator[Act]:
    """The acts of a situation, one after the other."""
    site = SITES[situation.site]
    saved = site.table in ("pack", "unpack")
    registering = [Register("a", site.name)]
    if not saved:
        registering.append(Register("b", site.name, situation.first))
    if not site.graph:
        yield from registering
    if situation.partner:
        yield Register("c", situation.partner)
    if situation.before:
        yield Alter(situation.before)
    for cycle in range(3):
        if cycle == 0 and situation.trouble:
            yield trouble(situation)
        if cycle == 0 and situation.between == "thaw":
            yield Alter("freeze")
        yield Trigger("attach")
        yield Trigger("forward", call=situation.call if cycle < 2 else "")
        if cycle == 0:
            if site.graph:
                yield from registering
            if situation.between == "add":
                yield Register("e", site.name)
            elif situation.between == "remove":
                yield Remove("a", situation.removal)
            elif situation.between:
                yield Alter(situation.between)
        yield Trigger("backward", situation.backward)
        if cycle == 0 and situation.between in UNDONE:
            yield Alter(UNDONE[situation.between])
        yield from (Trigger(what) for what in EVENTS[3:])
        if cycle == 1:
            yield Remove("a", situation.removal)
    yield Leave()
