"""What a run with cuts showed: calls, their boundaries, and what crossed these; see `hookcheck.models.cutting`."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from inspect import signature
from itertools import count
from typing import Any

import torch

from hookcheck.models.order import before, edges, uses

Keep = Callable[[torch.Tensor], Any]
"""What is kept of a gradient."""

CALLED, DIRECT = "called", "direct"


@dataclass(frozen=True)
class Spot:
    """A tensor at a boundary: where it is (``0``, ``1[key]``, ``mask``; of outputs ``0`` for one alone), and what.

    ``place`` is its position among the positional arguments or the outputs; None inside of containers and for keywords.
    ``sort`` is the word of `hookcheck.topology.tensors.TENSORS` for one that is not plain.
    """

    where: str
    place: int | None
    requires_grad: bool
    shape: tuple[int, ...]
    dtype: str
    sort: str = ""
    leaf: bool = False


@dataclass(frozen=True, eq=False)
class Crossing:
    """One run of an identity: in which backward pass, at which ``turn`` among all, and the gradient of each of its
    spots (by index among those of the boundary), as `Keep` has it, or None."""

    backward: int
    turn: int
    gradients: dict[int, Any]


@dataclass(eq=False)
class Boundary:
    """One side of a call: its tensors, and what crossed; ``nodes`` are the identities while the cut is open.

    ``index`` is its number in the order in which identities are made. ``cut`` says whether there is any identity.
    """

    index: int
    spots: tuple[Spot, ...] = ()
    crossings: list[Crossing] = field(default_factory=list)
    nodes: list[Any] = field(default_factory=list)
    cut: bool = False

    def crossed(self, backward: int) -> dict[int, Any] | None:
        """The gradients of one pass by spot; None where no identity ran."""
        those = [crossing for crossing in self.crossings if crossing.backward == backward]
        return {spot: g for crossing in those for spot, g in crossing.gradients.items()} if those else None


@dataclass(eq=False)
class CutCall:
    """One call of a module.

    ``path`` is as in ``named_modules``, ``number`` counts from 0 for each module, ``grad`` says whether grad mode was
    on, ``way`` is `CALLED` (through ``__call__``) or `DIRECT` (``forward`` itself), ``after`` is how many backward
    passes came before, ``outer`` the call that it is inside of, by its place in `Cuts.calls`. ``arguments`` and
    ``outputs`` are how many there are; ``container`` is the type of the output. ``written`` are the spots of the entry
    that the call wrote to in place, ``overwritten`` those of the exit that were written to before the outermost call
    ended. ``batched`` says that the call is inside of ``torch.vmap``, ``passes`` that an output is one of the very
    tensors that came in, which are ``entered`` until that is known; ``used`` that one is used beside what comes out,
    inside of the call or by one that hands it on, or that the model has a hook on it or on its module. ``given``,
    ``left`` and ``result`` are what ``remember`` made of the arguments before and after the call, and of what it gave,
    as forward hooks that are there have left it.
    """

    path: str
    number: int
    grad: bool
    way: str
    after: int
    entry: Boundary
    exit: Boundary
    outer: int | None
    arguments: int = 0
    outputs: int = 0
    container: str = ""
    written: tuple[str, ...] = ()
    overwritten: tuple[str, ...] = ()
    batched: bool = False
    passes: bool = False
    used: bool = False
    finished: bool = False
    entered: tuple[Any, ...] = ()
    given: Any = None
    left: Any = None
    result: Any = None


@dataclass(eq=False)
class Alias:
    """A tensor that an identity handed out, at a spot of a call; ``source`` is what it was handed out for, if that
    came from an identity."""

    call: CutCall
    where: str
    output: bool
    tensor: torch.Tensor
    source: Alias | None

    def write(self) -> None:
        """Notes that it was written to, and so was what it was handed out for."""
        places = self.call.overwritten if self.output else self.call.written
        if self.where not in places:
            if self.output:
                self.call.overwritten += (self.where,)
            else:
                self.call.written += (self.where,)
        if self.source is not None:
            self.source.write()


class Cuts:
    """What a run with cuts showed: ``calls`` in order of entry, ``ended`` in order of their end, ``passes`` how many
    backward passes there were, ``recorded`` whether any was told to leave a graph of its own, ``nested`` which of
    ``backward`` and ``grad`` ran within a backward, ``copied`` the paths of modules that the model has
    copied, with their hooks, and called, ``acting`` those where a backward hook of the model's returns something."""

    def __init__(self, joined: bool, keep: Keep, remember: Callable[[Any], Any] | None = None) -> None:
        """``keep`` is applied to each gradient, ``remember``, if it is given, to arguments and results of calls: there
        are no identities then."""
        self.joined = joined
        self.keep = keep
        self.remember = remember
        self.calls: list[CutCall] = []
        self.ended: list[CutCall] = []
        self.boundaries: list[Boundary] = []
        self._indices = count()
        self.passes = 0
        self.recorded = False
        self.nested: set[str] = set()
        self.copied: set[str] = set()
        self.acting: set[str] = set()
        self.turn = 0
        self._open: dict[int, list[int]] = {}
        self._beginning = threading.Lock()
        self.aliases: list[Alias] = []
        self._alias_of: dict[int, tuple[weakref.ref[torch.Tensor], Alias]] = {}
        self._counts: dict[str, int] = {}
        self._depth = 0

    @property
    def open(self) -> list[int]:
        """The calls that are open in this thread, the innermost last, each by its place in ``calls``."""
        return self._open.setdefault(threading.get_ident(), [])

    def boundary(self) -> Boundary:
        """A new boundary."""
        self.boundaries.append(Boundary(self.index()))
        return self.boundaries[-1]

    def index(self) -> int:
        """The next number of a boundary: its identities are made after those of all that have lower ones."""
        return next(self._indices)

    def crossed(self, boundary: Boundary, spots: tuple[int, ...], gradients: tuple[Any, ...]) -> None:
        """Notes that an identity runs."""
        gradients_at = {spot: None if g is None else self.keep(g) for spot, g in zip(spots, gradients)}
        boundary.crossings.append(Crossing(max(0, self.passes - 1), self.turn, gradients_at))
        self.turn += 1

    def alias(self, call: CutCall, where: str, output: bool, of: torch.Tensor, tensor: torch.Tensor) -> None:
        """Notes that an identity handed out ``tensor`` for ``of``, which may come from an identity itself."""
        base = of._base if of._is_view() else of  # what is written to a view is written to what it is of
        source = self._known(base)
        if source is not None and source.call is call and output:
            source = source.source  # handed on by the call, which does not write to it itself
        # What is detached has the version of what it is detached from.
        self.aliases.append(Alias(call, where, output, tensor.detach(), source))
        self._alias_of[id(tensor)] = (weakref.ref(tensor), self.aliases[-1])

    def note_hook(self, tensor: torch.Tensor) -> None:
        """Notes that the model puts a hook on a tensor: behind it, what a call gives may have another gradient."""
        alias = self._known(tensor)
        if alias is not None and alias.output:
            alias.call.used = True

    def note_detached(self, tensor: torch.Tensor) -> None:
        """Notes that a tensor is detached in place, which counts as no write."""
        alias = self._known(tensor)
        if alias is not None:
            alias.write()

    def _known(self, tensor: torch.Tensor | None) -> Alias | None:
        reference, alias = self._alias_of.get(id(tensor), (None, None))
        return alias if reference is not None and reference() is tensor else None

    def forget(self) -> None:
        """Lets go of numbers: of each gradient stays whether it was there."""
        self.keep = bool
        for boundary in self.boundaries:
            for crossing in boundary.crossings:
                crossing.gradients.update({spot: True for spot, g in crossing.gradients.items() if g is not None})
        for call in self.calls:
            call.given = call.left = call.result = None

    def before(self) -> dict[int, int]:
        """For each boundary (by index) the bit mask of those whose identities must run before its own, going by the
        graph; the cut must still be open."""
        return before({node: boundary.index for boundary in self.boundaries for node in boundary.nodes})

    def note_other_uses(self) -> None:
        """Notes which outputs are used beside the identities that they went through; the cut must still be open."""
        counts = uses(node for boundary in self.boundaries for node in boundary.nodes)
        inner: set[Any] = set()
        for call in self.ended:  # those that are inside of a call end before it, and may give it their outputs
            behind = [edge for node in call.exit.nodes for edge in edges(node)]
            call.used |= any(counts[edge] > behind.count(edge) or edge[0] in inner for edge in behind)
            inner.update(call.exit.nodes if call.used else ())

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Counts the outermost calls of ``torch.autograd.backward`` and ``grad``, and notes ``create_graph``."""
        autograd: Any = torch.autograd
        originals = {name: getattr(autograd, name) for name in ("backward", "grad")}

        def counted(name: str, original: Any) -> Any:
            asked = signature(original)

            @wraps(original)
            def run(*args: Any, **kwargs: Any) -> Any:
                self.recorded |= bool(asked.bind(*args, **kwargs).arguments.get("create_graph"))
                self.passes += not self._depth
                self.nested |= {name} if self._depth else set()
                self._depth += 1
                try:
                    return original(*args, **kwargs)
                finally:
                    self._depth -= 1

            return run

        for name, original in originals.items():
            setattr(autograd, name, counted(name, original))
        try:
            yield
        finally:
            for name, original in originals.items():
                setattr(autograd, name, original)

    def begin(self, path: str, way: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CutCall:
        """A new call."""
        with self._beginning:
            return self._begun(path, way, args, kwargs)

    def _begun(self, path: str, way: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CutCall:
        number = self._counts[path] = self._counts.get(path, -1) + 1
        outer = self.open[-1] if self.open else None
        grad = torch.is_grad_enabled()
        call = CutCall(path, number, grad, way, self.passes, self.boundary(), self.boundary(), outer, len(args))
        call.given = self.remember((args, kwargs)) if self.remember else None
        self.open.append(len(self.calls))
        self.calls.append(call)
        return call

    def end(self, call: CutCall) -> None:
        """Closes the innermost call of this thread."""
        self.open.pop()
        if call.finished:
            self.ended.append(call)
        if not any(self._open.values()):
            for alias in self.aliases:
                if alias.tensor._version:
                    alias.write()
            self.aliases.clear()
            self._alias_of.clear()
