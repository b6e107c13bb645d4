"""What does a sequence of acts reach? Which hooks, with which options, were there during which act, and what they did.

By this the corpus is chosen, and its tests tell that it lacks nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hookcheck.programs.logs import Entry
from hookcheck.programs.machine.model import (
    KINDS,
    PARTS,
    Act,
    BackwardAct,
    CopyAct,
    FailAct,
    ForwardAct,
    GradAct,
    MachineModel,
    ModuleSite,
    RegisterAct,
    RemoveAct,
    TrainAct,
)

Reach = tuple[Any, ...]


def options(model: MachineModel, number: int) -> tuple[str, ...]:
    """What a hook was registered with: ``plain`` if with nothing that has a name."""
    hook = model.hooks[number]
    removes = "removes itself" if hook.removes == number else "removes another"
    words = [*hook.options, *["global"] * (hook.site is None), *[removes] * (hook.removes is not None)]
    return tuple(words) or ("plain",)


def word(act: Act) -> str:
    """What a call or a backward is called here."""
    return "no_grad" if isinstance(act, ForwardAct) and not act.grad else type(act).__name__.removesuffix("Act").lower()


class Nets:
    """What a net is: whether it trains, and how it was copied from the first."""

    def __init__(self) -> None:
        """The first net trains."""
        self.trains = [True]
        self.ways: list[tuple[str, ...]] = [()]

    def after(self, act: Act) -> None:
        """Keeps what an act does to a net."""
        if isinstance(act, TrainAct):
            self.trains[act.net] = act.mode
        if isinstance(act, CopyAct):
            self.trains.append(self.trains[act.net])
            self.ways.append((*self.ways[act.net], act.way))

    def situations(self, act: ForwardAct | FailAct | BackwardAct | GradAct, hook: RegisterAct) -> set[str]:
        """Where a hook is during an act: on a copy that it was copied with, or that all modules include; in eval."""
        copied = hook.site is None or hook.site.net != act.net
        return {word(act), *(self.ways[act.net] if copied else ()), *(() if self.trains[act.net] else ("eval",))}


def there(model: MachineModel, act: ForwardAct | FailAct | BackwardAct | GradAct) -> set[int]:
    """The hooks on the modules that an act is about, now or at the call that a backward is of."""
    tables = [
        model.tables[name, kind] for kind in KINDS for name in ("", *(ModuleSite(act.net, p).name for p in PARTS))
    ]
    graph = model.graphs[act.net] or {}
    return {number for table in [*tables, *graph.values()] for number in table}


def reached(acts: Sequence[Act]) -> frozenset[Reach]:
    """Of each hook that was there during a call or a backward: kind, option, situation, and whether it was called."""
    return frozenset(
        (kind, option, situation, called)
        for kind, words, situations, called in _present(acts)
        for option in words
        for situation in situations
    )


def combinations(acts: Sequence[Act]) -> frozenset[Reach]:
    """What is worth a line: `reached` with all options at once, neighbours, removals, and acts after acts."""
    present = {(kind, words, at, called) for kind, words, ats, called in _present(acts) for at in ats}
    words = [word(act) for act in acts]
    return frozenset((*present, *_meetings(acts), *zip(words, words[1:]), *zip(words, words[1:], words[2:])))


def _present(acts: Iterable[Act]) -> Iterator[tuple[str, tuple[str, ...], set[str], bool]]:
    model, nets = MachineModel(), Nets()
    for act in acts:
        if isinstance(act, (ForwardAct, FailAct, BackwardAct, GradAct)):
            hooks = there(model, act)
            called = {number for number, _ in _numbers(model.after(act))}
            for number in hooks:
                hook = model.hooks[number]
                yield hook.kind, options(model, number), nets.situations(act, hook), number in called
        else:
            model.after(act)
        nets.after(act)


def _meetings(acts: Iterable[Act]) -> Iterator[Reach]:
    """Hooks that run one after the other on a module, and where in its table a hook is that is removed."""
    model = MachineModel()
    for act in acts:
        if isinstance(act, RemoveAct):
            hook = model.hooks[act.hook]
            table = model.tables[hook.site.name if hook.site else "", hook.kind]
            place = table.index(act.hook) if act.hook in table else None
            inherited = sum(act.hook in each for each in model.tables.values()) > 1
            yield "remove", hook.kind, options(model, act.hook), place, len(table), inherited
        notes = _numbers(model.after(act))
        for (first, at), (second, then) in zip(notes, notes[1:]):
            a, b = model.hooks[first], model.hooks[second]
            if at == then and a.kind == b.kind:
                gone = a.removes is not None and (a.removes == first, a.removes == second, a.removes > second)
                yield word(act), a.kind, options(model, first), options(model, second), first < second, gone


def _numbers(log: Iterable[Entry]) -> list[tuple[int, str]]:
    """The hooks in a log, with their modules."""
    return [(int(entry[0][1:]), entry[1]) for entry in log if entry[0][1:].isdigit()]
