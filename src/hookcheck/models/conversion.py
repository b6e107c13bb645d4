"""What a conversion of a model did to its hooks: which were kept, moved, lost, left behind or doubled."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from types import MethodType
from typing import Any

from hookcheck.errors import HookcheckError
from hookcheck.models.tables import TableHook, function_name, hooks_of
from hookcheck.probe.lazy import nn, torch

KEPT, MOVED, CHANGED, LOST, LEFT_BEHIND, DOUBLED = "kept", "moved", "changed", "lost", "left behind", "doubled"


@dataclass(frozen=True)
class Held:
    """A hook and where it is: the path of its module or parameter, a reference to that, its place in the table."""

    path: str
    hook: TableHook
    owner: weakref.ref[Any]
    place: int


@dataclass(frozen=True)
class Inventory:
    """All hooks of a model, taken at one moment; conversions in place change the model itself."""

    model: str
    held: tuple[Held, ...]


@dataclass(frozen=True)
class Fate:
    """What became of one hook. ``now`` is the path where it is afterwards, None for nowhere; ``note`` says more."""

    fate: str
    kind: str
    function: str
    path: str
    now: str | None
    note: str = ""

    def __str__(self) -> str:
        """One line."""
        where = f"on {self.path or 'the model'}"
        there = f", now on {self.now or 'the model'}" if self.now is not None and self.now != self.path else ""
        return f"{self.fate}: {self.kind} hook {self.function} {where}{there}{f' ({self.note})' if self.note else ''}"


@dataclass(frozen=True)
class Conversion:
    """What became of every hook of a model."""

    before: str
    after: str
    fates: tuple[Fate, ...]

    def of(self, fate: str) -> tuple[Fate, ...]:
        """Those that met this fate."""
        return tuple(one for one in self.fates if one.fate == fate)

    def __str__(self) -> str:
        """A line for each hook, what went wrong first."""
        head = f"{self.before} to {self.after}: {len(self.fates)} hooks" if self.fates else "no hooks were there"
        order = (LOST, LEFT_BEHIND, CHANGED, DOUBLED, MOVED, KEPT)
        return "\n".join([head, *(f"  {one}" for fate in order for one in self.of(fate))])

    def to_json(self) -> str:
        """The fields as JSON."""
        return json.dumps(asdict(self), indent=2)

    def raise_if_lost(self) -> None:
        """Raises where a hook is no longer what it was; a move to another path is none of that.

        Raises:
            AssertionError: hooks were lost, left behind, doubled or are registered otherwise.
        """
        wrong = [one for one in self.fates if one.fate in (LOST, LEFT_BEHIND, CHANGED, DOUBLED)]
        if wrong:
            hooks = "1 hook" if len(wrong) == 1 else f"{len(wrong)} hooks"
            raise AssertionError("\n".join([f"{hooks} did not survive:", *(f"  {one}" for one in wrong)]))


def inventory(model: Any) -> Inventory:
    """All hooks on a model's modules and parameters, to be taken before a conversion in place.

    Raises:
        HookcheckError: it is no module, or a scripted one.
    """
    if isinstance(model, Inventory):
        return model
    if not isinstance(model, nn.Module):
        hint = "pass exported.module()" if hasattr(model, "graph_module") else "pass the model itself"
        raise HookcheckError(f"an nn.Module is needed, not {type(model).__name__}: {hint}")
    if isinstance(model, torch.jit.ScriptModule):
        raise HookcheckError("the hooks of a ScriptModule are compiled into it and cannot be read: compare before that")
    things = [*model.named_modules(), *model.named_parameters()]
    held = [
        Held(path, hook, weakref.ref(thing), place)
        for path, thing in things
        for place, hook in enumerate(hooks_of(thing))
    ]
    return Inventory(type(model).__name__, tuple(held))


def check_conversion(before: Any, after: Any) -> Conversion:
    """What became of the hooks of ``before`` in ``after``, a model that was made of it.

    ``before`` is the model, or what `inventory` gave before a conversion in place. A hook is the same one if it is the
    same function, or equal, or a copy: the same method of a copied object, an object of the same class, a partial of
    the same function. Its fate is ``kept`` (on the same object, or at the same path), ``moved`` (elsewhere),
    ``changed`` (its options or its order are not as before), ``left behind`` (only on what it was on, which is no part
    of ``after``), ``lost`` (nowhere) or ``doubled`` (there once more than before).

    Raises:
        HookcheckError: one of the two is no module, or a scripted one.
    """
    old, new = inventory(before), inventory(after)
    matched = dict(_matches(old, new))
    fates = [_fate(one, matched.get(i), matched, old, new) for i, one in enumerate(old.held)]
    rest = [one for i, one in enumerate(new.held) if i not in matched.values()]
    for one in rest:
        twin = next((other for other in old.held if _likeness(other.hook, one.hook)), None)
        if twin is not None:
            fates.append(Fate(DOUBLED, one.hook.kind, function_name(one.hook.function), twin.path, one.path))
    return Conversion(old.model, new.model, tuple(fates))


def _matches(old: Inventory, new: Inventory) -> Iterator[tuple[int, int]]:
    """Pairs of places in the two: the best first, and none in two pairs."""
    ranked = [
        (-likeness, -_nearness(a, b), abs(a.place - b.place), i, j)
        for i, a in enumerate(old.held)
        for j, b in enumerate(new.held)
        if (likeness := _likeness(a.hook, b.hook))
    ]
    left: set[int] = set()
    right: set[int] = set()
    for *_, i, j in sorted(ranked, key=lambda one: (one[1] == 0, *one)):
        if i not in left and j not in right:
            left.add(i)
            right.add(j)
            yield i, j


def _nearness(a: Held, b: Held) -> int:
    """2 on the same object, 1 at the same path, 0 elsewhere."""
    if a.owner() is not None and a.owner() is b.owner():
        return 2
    return int(a.path == b.path)


def _likeness(a: TableHook, b: TableHook) -> int:
    """2 for the same function or an equal one, 1 for a copy, 0 for another one or another table."""
    if a.table != b.table:
        return 0
    if a.function is b.function or _equal(a.function, b.function):
        return 2
    return int(_essence(a.function) == _essence(b.function))


def _equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and isinstance(a, MethodType) and a == b


def _essence(function: Any) -> Any:
    """What a copy of the function shares with it."""
    if isinstance(function, MethodType):
        return "method", function.__func__, type(function.__self__)
    if isinstance(function, partial):
        words = tuple(word for word in function.args if isinstance(word, (str, int, float)))
        return "partial", _essence(function.func), words
    if hasattr(function, "__code__") or not hasattr(function, "__dict__"):
        return function
    return "object", type(function)


def _fate(one: Held, at: int | None, matched: dict[int, int], old: Inventory, new: Inventory) -> Fate:
    kind, name = one.hook.kind, function_name(one.hook.function)
    if at is None:
        owner = one.owner()
        there = owner is not None and any(_likeness(hook, one.hook) for hook in hooks_of(owner))
        return Fate(LEFT_BEHIND if there else LOST, kind, name, one.path, None)
    now = new.held[at]
    notes = [f"no longer {word}" for word in one.hook.options if word not in now.hook.options]
    notes += [f"now {word}" for word in now.hook.options if word not in one.hook.options]
    for i, j in matched.items():
        other, then = old.held[i], new.held[j]
        beside = (other.path, other.hook.table) == (one.path, one.hook.table) and then.path == now.path
        if beside and other.place < one.place and then.place > now.place:
            notes.append(f"now before {function_name(other.hook.function)}")
    if notes:
        return Fate(CHANGED, kind, name, one.path, now.path, "; ".join(notes))
    return Fate(KEPT if _nearness(one, now) else MOVED, kind, name, one.path, now.path)
