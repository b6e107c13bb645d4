"""What must hooks note while acts follow one another? Acts as plain data, and a model that needs no torch.

The network is ``net0``, a container of two modules that multiply by 2 and by 3; its copies are ``net1`` and so on.
Hooks change nothing: they note themselves, the module and what they were given, and may remove a hook, so that every
number is a product. The model keeps what the documentation speaks of: for each kind one table of hooks for all modules
and one for each module, where ``prepend`` puts a hook first and anything else last. Each method of `Model` is one act.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Union

from hookcheck.programs.logs import Entry

Release = tuple[int, int]
KINDS = ("forward_pre", "forward", "full_backward", "full_backward_pre")
FACTORS = {"[0]": 2.0, "[1]": 3.0}
"""What the parts of a net multiply by, in the order in which they are called."""

PARTS = ("", *FACTORS)
NETS = 3
"""How many nets there may be, copies included."""


@dataclass(frozen=True)
class ModuleSite:
    """A module: a net, or with an index in ``part`` one of its parts."""

    net: int = 0
    part: str = ""

    @property
    def name(self) -> str:
        """The expression for it."""
        return f"net{self.net}{self.part}"


@dataclass(frozen=True)
class RegisterAct:
    """Registers the next hook, on all modules if there is no ``site``; when called it ``removes`` hook number so."""

    kind: str
    site: ModuleSite | None = None
    prepend: bool = False
    with_kwargs: bool = False
    always_call: bool = False
    removes: int | None = None

    @property
    def options(self) -> dict[str, bool]:
        """The arguments that it is registered with."""
        return {name: True for name in ("prepend", "with_kwargs", "always_call") if getattr(self, name)}


@dataclass(frozen=True)
class RemoveAct:
    """Calls ``remove()`` of the handle that registering ``hook`` gave."""

    hook: int


@dataclass(frozen=True)
class ForwardAct:
    """Calls a net with ``x``; without ``grad``, under ``torch.no_grad``."""

    net: int = 0
    x: float = 1.0
    grad: bool = True


@dataclass(frozen=True)
class FailAct:
    """Calls a net with what its first part cannot take; the numbers in it add up to 0."""

    net: int = 0


@dataclass(frozen=True)
class BackwardAct:
    """Calls ``backward`` on what the last call of a net gave, ``v`` being the gradient to start from."""

    net: int = 0
    v: float = 1.0


@dataclass(frozen=True)
class GradAct:
    """As `Backward`, by ``torch.autograd.grad`` of the input of that call."""

    net: int = 0
    v: float = 1.0


@dataclass(frozen=True)
class CopyAct:
    """Makes the next net of a net, by ``deepcopy`` or by ``pickle``."""

    net: int = 0
    way: str = "deepcopy"


@dataclass(frozen=True)
class TrainAct:
    """Calls ``train(mode)`` of a net."""

    net: int = 0
    mode: bool = True


Act = Union[RegisterAct, RemoveAct, ForwardAct, FailAct, BackwardAct, GradAct, CopyAct, TrainAct]
Graph = dict[tuple[str, str], tuple[int, ...]]
"""The backward hooks that a call is going to run, by part and kind."""


def kinds(release: Release) -> tuple[str, ...]:
    """The kinds of hooks that a torch has."""
    return KINDS if release >= (2, 0) else KINDS[:3]


def fitted(act: RegisterAct, release: Release) -> RegisterAct:
    """The act as a torch can take it: the kind, and the options less those that it lacks or another clause is about.

    A kind that it lacks becomes ``full_backward``. ``always_call`` goes without removing a hook, since the tables are
    walked as they are where a call raises; and on all modules without ``with_kwargs``, which such a call forgets there
    (GL-05).
    """
    kind = act.kind if act.kind in kinds(release) else "full_backward"
    forward, pre, local = kind == "forward", kind == "forward_pre", act.site is not None
    kwargs_since = (2, 0) if local else (2, 6)
    with_kwargs = act.with_kwargs and (forward or (pre and local)) and release >= kwargs_since
    return replace(
        act,
        kind=kind,
        prepend=act.prepend and local and release >= (2, 0),
        with_kwargs=with_kwargs,
        always_call=act.always_call
        and forward
        and release >= (2, 1)
        and act.removes is None
        and (local or not with_kwargs),
    )


class MachineModel:
    """What is registered, what the graphs of calls hold, and the log."""

    def __init__(self) -> None:
        """One net without hooks."""
        self.hooks: list[RegisterAct] = []
        self.tables: dict[tuple[str, str], list[int]] = defaultdict(list)
        self.graphs: list[Graph | None] = [None]
        self.log: list[Entry] = []

    def possible(self, act: Act) -> bool:
        """Whether there is what the act is about.

        A hook must not remove another that has ``with_kwargs``: whether that still gets them in the same call is
        nowhere said.
        """
        if isinstance(act, RegisterAct):
            number, removed = len(self.hooks), act.removes
            may_remove = (
                removed is None or removed == number or (removed < number and not self.hooks[removed].with_kwargs)
            )
            return may_remove and (act.site is None or act.site.net < len(self.graphs))
        if isinstance(act, RemoveAct):
            return act.hook < len(self.hooks)
        if act.net >= len(self.graphs) or (isinstance(act, CopyAct) and len(self.graphs) == NETS):
            return False
        return not isinstance(act, (BackwardAct, GradAct)) or self.graphs[act.net] is not None

    def after(self, act: Act) -> list[Entry]:
        """What must be noted during the act."""
        self.log = []
        getattr(self, type(act).__name__.removesuffix("Act").lower())(act)
        return self.log

    def register(self, act: RegisterAct) -> None:
        """A hook goes last, or first, among those of its kind and place."""
        table = self._table(act)
        table.insert(0 if act.prepend else len(table), len(self.hooks))
        self.hooks.append(act)

    def remove(self, act: RemoveAct) -> None:
        """A handle removes its hook from where it was registered and nowhere else; again, it does nothing."""
        table = self._table(self.hooks[act.hook])
        if act.hook in table:
            table.remove(act.hook)

    def forward(self, act: ForwardAct) -> None:
        """The hooks that are to run in backward are those at the time of the call (U-01, U-02)."""
        graph: Graph = {}
        self.log.append(("output", self._call(ModuleSite(act.net), act.x, graph)))
        self.graphs[act.net] = graph if act.grad else None

    def fail(self, act: FailAct) -> None:
        """The error of the first part comes out."""
        self._call(ModuleSite(act.net), 0.0, {}, fails=True)
        self.log.append(("raised", "RuntimeError"))

    def backward(self, act: BackwardAct) -> None:
        """The graph is kept, so each backward calls the hooks anew."""
        self.log.append(("gradient", self._backward(ModuleSite(act.net), act.v)))

    grad = backward

    def copy(self, act: CopyAct) -> None:
        """The new net has the hooks of the old one, in tables of its own; handles are the old one's (U-13)."""
        old, new = act.net, len(self.graphs)
        for part in PARTS:
            for kind in KINDS:
                self.tables[ModuleSite(new, part).name, kind] = [*self.tables[ModuleSite(old, part).name, kind]]
        self.graphs.append(None)

    def train(self, act: TrainAct) -> None:
        """Hooks do not mind the mode."""

    def _table(self, hook: RegisterAct) -> list[int]:
        return self.tables[hook.site.name if hook.site else "", hook.kind]

    def _due(self, kind: str, site: ModuleSite) -> tuple[int, ...]:
        """Hooks on all modules, then those of the module, as they are now: who goes meanwhile still runs (U-04)."""
        return (*self.tables["", kind], *self.tables[site.name, kind])

    def _run(self, number: int, site: ModuleSite, args: Any, *others: Any) -> None:
        hook = self.hooks[number]
        given = (args, {}, *others) if hook.with_kwargs else (args, *others)
        self.log.append((f"h{number}", site.name, given))
        if hook.removes is not None:
            self.remove(RemoveAct(hook.removes))

    def _call(self, site: ModuleSite, x: float, graph: Graph, fails: bool = False) -> float | None:
        """Pre-hooks, the body, hooks; where it fails there is no output, and only hooks with ``always_call`` run."""
        for kind in ("full_backward_pre", "full_backward"):
            graph[site.part, kind] = self._due(kind, site)
        for hook in self._due("forward_pre", site):
            self._run(hook, site, (x,))
        y: float | None = None if fails else x * FACTORS.get(site.part, 1.0)
        if not site.part:
            y = x
            for part in FACTORS:
                y = None if y is None else self._call(ModuleSite(site.net, part), y, graph, fails)
        for hook in self._due("forward", site):
            if y is not None or self.hooks[hook].always_call:
                self._run(hook, site, (x,), y)
        return y

    def _backward(self, site: ModuleSite, grad_output: float) -> float:
        """Pre-hooks, the body backwards, hooks; the VJP is ``grad_input = factor * grad_output``."""
        graph = self.graphs[site.net] or {}
        for hook in graph[site.part, "full_backward_pre"]:
            self._run(hook, site, (grad_output,))
        grad_input = grad_output * FACTORS.get(site.part, 1.0)
        if not site.part:
            for part in reversed([*FACTORS]):
                grad_input = self._backward(ModuleSite(site.net, part), grad_input)
        for hook in graph[site.part, "full_backward"]:
            self._run(hook, site, (grad_input,), (grad_output,))
        return grad_input


def steps(acts: Iterable[Act]) -> list[tuple[Act, list[Entry]]]:
    """Those of ``acts`` that are possible when their turn comes, each with what must be noted during it."""
    model = MachineModel()
    return [(act, model.after(act)) for act in acts if model.possible(act)]
