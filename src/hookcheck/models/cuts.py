"""What crosses the boundaries of module calls? A run with *cuts*: identities of our own, and no hook of torch.

This is the second oracle, for networks without formulas. While `cut` is open, each call of a sub-module has identities
(``torch.autograd.Function``) on the tensors that go in and come out. They say which gradient crosses, in which backward
pass, in what order, or that none does. All else (outputs, gradients of leaves) is for a run without cuts to say.

Two groupings: *joined*, one identity over the positional tensors of a call and one over its output tensors, as the
notes on autograd describe full backward hooks; and *single*, one identity a tensor, keywords and containers included,
which hands on what there is and so shows what a run without any hook computes.

An identity hands out another tensor on the same memory, with a version of its own. So in-place operations, which a full
hook refuses, go through; what a call has written to is written back to the caller's tensor in its history as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, is_dataclass
from functools import wraps
from typing import Any

import torch

from hookcheck.probe.copying import fields_of, is_container

Keep = Callable[[torch.Tensor], Any]
"""What is kept of a gradient."""

CALLED, DIRECT = "called", "direct"
_CALLER = torch.nn.Module._call_impl.__code__.co_filename


@dataclass(frozen=True)
class Spot:
    """A tensor at a boundary: where it is (``0``, ``1[key]``, ``mask``; of outputs ``0`` for one alone), and what.

    ``place`` is its position among the positional arguments or the outputs; None inside of containers and for keywords.
    """

    where: str
    place: int | None
    requires_grad: bool
    shape: tuple[int, ...]
    dtype: str


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

    ``index`` is its number in order of creation. ``cut`` says whether there is any identity.
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
    """One call of a module: ``path`` as in ``named_modules``, ``number`` from 0 for each module, ``grad`` whether grad
    mode was on, ``way`` `CALLED` (through ``__call__``) or `DIRECT` (``forward`` itself), ``after`` how many backward
    passes came before. ``arguments`` and ``outputs`` are how many there are; ``container`` is the type of the output.
    ``outer`` is the call that it is inside of, by its place in `Cuts.calls`. ``written`` are the spots of the entry
    that it wrote to. ``args``, ``kwargs`` and ``result`` are what ``remember`` gave for them."""

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
    finished: bool = False
    given: Any = None
    left: Any = None
    result: Any = None


class Cuts:
    """What a run with cuts showed: ``calls`` in order of entry, ``ended`` in order of their end, ``passes`` how many
    backward passes there were."""

    def __init__(self, joined: bool, keep: Keep, remember: Callable[[Any], Any] | None = None) -> None:
        """``keep`` is applied to each gradient, ``remember`` to arguments and results of calls, if it is given."""
        self.joined = joined
        self.keep = keep
        self.remember = remember
        self.calls: list[CutCall] = []
        self.ended: list[CutCall] = []
        self.boundaries: list[Boundary] = []
        self.passes = 0
        self.turn = 0
        self.open: list[int] = []
        self._counts: dict[str, int] = {}
        self._depth = 0

    def boundary(self) -> Boundary:
        """A new boundary."""
        self.boundaries.append(Boundary(len(self.boundaries)))
        return self.boundaries[-1]

    def crossed(self, boundary: Boundary, spots: tuple[int, ...], gradients: tuple[Any, ...]) -> None:
        """Notes that an identity runs."""
        kept = {spot: None if g is None else self.keep(g) for spot, g in zip(spots, gradients)}
        boundary.crossings.append(Crossing(max(0, self.passes - 1), self.turn, kept))
        self.turn += 1

    def before(self) -> dict[int, int]:
        """For each boundary (by index) the bit mask of those whose identities must run before its own, going by the
        graph; the cut must still be open."""
        at = {node: boundary.index for boundary in self.boundaries for node in boundary.nodes}
        found = {boundary.index: 0 for boundary in self.boundaries}
        for node, behind in _reached(at).items():
            if node in at:
                for index in _bits(behind):
                    found[index] |= 1 << at[node]
        return found

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Counts the outermost calls of ``torch.autograd.backward`` and ``grad``."""
        autograd: Any = torch.autograd
        originals = {name: getattr(autograd, name) for name in ("backward", "grad")}

        def counted(original: Any) -> Any:
            @wraps(original)
            def run(*args: Any, **kwargs: Any) -> Any:
                self.passes += not self._depth
                self._depth += 1
                try:
                    return original(*args, **kwargs)
                finally:
                    self._depth -= 1

            return run

        for name, original in originals.items():
            setattr(autograd, name, counted(original))
        try:
            yield
        finally:
            for name, original in originals.items():
                setattr(autograd, name, original)

    def begin(self, path: str, way: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CutCall:
        """A new call."""
        number = self._counts[path] = self._counts.get(path, -1) + 1
        outer = self.open[-1] if self.open else None
        grad = torch.is_grad_enabled()
        call = CutCall(path, number, grad, way, self.passes, self.boundary(), self.boundary(), outer, len(args))
        call.given = self.remember((args, kwargs)) if self.remember else None
        self.open.append(len(self.calls))
        self.calls.append(call)
        return call

    def end(self, call: CutCall) -> None:
        """Closes the innermost call."""
        self.open.pop()
        if call.finished:
            self.ended.append(call)


class _Identity(torch.autograd.Function):
    """Hands its tensors on, and notes the gradients that come back."""

    @staticmethod
    def forward(ctx: Any, cuts: Cuts, boundary: Boundary, spots: tuple[int, ...], *tensors: Any) -> Any:
        ctx.cuts, ctx.boundary, ctx.spots = cuts, boundary, spots
        ctx.like = [(tensor.shape, tensor.dtype, tensor.device) for tensor in tensors]
        ctx.set_materialize_grads(False)
        return tuple(tensor.data for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        ctx.cuts.crossed(ctx.boundary, ctx.spots, gradients)
        if ctx.cuts.joined:  # as a Node of torch, which gives zeros for what is not there
            gradients = tuple(
                torch.zeros(shape, dtype=dtype, device=device) if g is None else g
                for g, (shape, dtype, device) in zip(gradients, ctx.like)
            )
        return (None, None, None, *gradients)


@contextmanager
def cut(
    model: torch.nn.Module, joined: bool, keep: Keep = torch.Tensor.detach, remember: Callable[[Any], Any] | None = None
) -> Iterator[Cuts]:
    """While it is open, every call of ``model`` and its sub-modules has cuts; see the head of this module.

    ``keep`` is what stays of each gradient; ``remember``, if given, what stays of arguments and results.
    """
    cuts = Cuts(joined, keep, remember)
    modules = {path: module for path, module in model.named_modules() if not isinstance(module, torch.jit.ScriptModule)}
    own = {path: vars(module).get("forward") for path, module in modules.items()}
    for path, module in modules.items():
        vars(module)["forward"] = _wrapped(cuts, path, module.forward)
    try:
        with cuts.counting():
            yield cuts
    finally:
        for path, module in modules.items():
            before = own[path]
            if before is None:
                del vars(module)["forward"]
            else:
                vars(module)["forward"] = before
        for boundary in cuts.boundaries:
            boundary.nodes.clear()  # they hold the graph


def _wrapped(cuts: Cuts, path: str, forward: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(forward)
    def run(*args: Any, **kwargs: Any) -> Any:
        way = CALLED if sys._getframe(1).f_code.co_filename == _CALLER else DIRECT
        call = cuts.begin(path, way, args, kwargs)
        entry = _Crosser(cuts, call.entry, outputs=False)
        try:
            inner = entry.swapped(dict(enumerate(args)))
            named = entry.swapped(kwargs, positional=False)
            entry.cut()
            result = forward(*(inner[i] for i in range(len(args))), **named)
            result = entry.restored(result)
            call.left = cuts.remember((args, kwargs)) if cuts.remember else None
            call.result = cuts.remember(result) if cuts.remember else None
            call.written = tuple(entry.written)
            call.container = "tensor" if isinstance(result, torch.Tensor) else type(result).__name__
            several = isinstance(result, tuple)
            call.outputs = len(result) if several else 1
            crosser = _Crosser(cuts, call.exit, outputs=True)
            given = crosser.swapped(dict(enumerate(result)) if several else {0: result})
            crosser.cut()
            call.finished = True
            return _rebuilt(result, [given[i] for i in range(len(result))]) if several else given[0]
        finally:
            entry.restore_containers()
            cuts.end(call)

    return run


class _Crosser:
    """Puts the identities on one side of one call.

    Tensors are looked for first, then all are cut at once, then put in place: tuples are made anew, of lists, dicts and
    dataclasses the items are replaced, for whoever holds the container must see what the call does to it.
    """

    def __init__(self, cuts: Cuts, boundary: Boundary, outputs: bool) -> None:
        self.cuts = cuts
        self.boundary = boundary
        self.outputs = outputs
        self.found: list[torch.Tensor] = []
        self.spots: list[Spot] = []
        self.pending: list[tuple[Any, Any, Any]] = []
        self.pairs: list[tuple[Any, Any, str]] = []
        self.written: list[str] = []
        self._undo: list[tuple[Any, Any, Any, Any]] = []
        self._seen: set[int] = set()
        self._inner: dict[int, Any] = {}
        self._roots: list[dict[Any, Any]] = []

    def swapped(self, values: dict[Any, Any], positional: bool = True) -> dict[Any, Any]:
        """A dict in which `cut` will put other tensors; the tensors in ``values`` are noted."""
        root = dict(values)
        self._roots.append(root)
        for key, value in values.items():
            self._look(value, str(key), key if positional else None)
        return root

    def _look(self, value: Any, where: str, place: int | None) -> None:
        if isinstance(value, torch.Tensor):
            dtype = str(value.dtype).partition(".")[2]
            self.spots.append(Spot(where, place, value.requires_grad, tuple(value.shape), dtype))
            self.found.append(value)
        elif is_container(value) and not isinstance(value, type) and id(value) not in self._seen:
            self._seen.add(id(value))
            for key, item in fields_of(value):
                self._look(item, f"{where}[{key}]", None)

    def cut(self) -> None:
        """Makes the identities and puts what they give in the place of what was found."""
        self.boundary.spots = tuple(self.spots)
        chosen = [i for i, spot in enumerate(self.spots) if spot.requires_grad]
        if self.cuts.joined:
            chosen = [i for i in chosen if self.spots[i].place is not None]
        if not chosen or not torch.is_grad_enabled():
            return
        self.boundary.cut = True
        for group in [chosen] if self.cuts.joined else [[i] for i in chosen]:
            tensors = [self.found[i] for i in group]
            made = _Identity.apply(self.cuts, self.boundary, tuple(group), *tensors)  # type: ignore[no-untyped-call]
            self.boundary.nodes.append(made[0].grad_fn)
            for i, tensor in zip(group, made):
                self._inner[i] = tensor
                if not self.outputs:
                    self.pairs.append((self.found[i], tensor, self.spots[i].where))
        numbers = iter(range(len(self.found)))
        self._seen.clear()
        for root in self._roots:
            for key, value in list(root.items()):
                root[key] = self._put(value, numbers)

    def _put(self, value: Any, numbers: Iterator[int]) -> Any:
        """``value`` with the tensors that the identities gave, looked at in the order of `_look`."""
        if isinstance(value, torch.Tensor):
            return self._inner.get(next(numbers), value)
        if not is_container(value) or isinstance(value, type) or id(value) in self._seen:
            return value
        self._seen.add(id(value))
        items = [(key, item, self._put(item, numbers)) for key, item in _keyed(value)]
        if all(item is other for _, item, other in items):
            return value
        if isinstance(value, tuple):
            return _rebuilt(value, [other for _, _, other in items])
        for key, item, other in items:
            if item is not other:
                _set(value, key, other)
                self._undo.append((value, key, item, other))
        return value

    def restored(self, result: Any) -> Any:
        """Writes back what the call wrote to, in the history of the caller's tensor as well; and gives ``result``."""
        for outer, inner, where in self.pairs:
            if inner._version:
                self.written.append(where)
                outer.copy_(inner)
                result = _replaced(result, inner, outer)
        return result

    def restore_containers(self) -> None:
        """Puts the caller's own tensors back into the caller's containers, where they are still the identities'."""
        for container, key, item, other in reversed(self._undo):
            if dict(_keyed(container)).get(key) is other:
                _set(container, key, item)
        self._undo.clear()


def _keyed(container: Any) -> list[tuple[Any, Any]]:
    """What a container holds, each with the key by which `_set` finds it."""
    if isinstance(container, dict):
        return list(container.items())
    return fields_of(container) if is_dataclass(container) else list(enumerate(container))


def _set(container: Any, key: Any, item: Any) -> None:
    if isinstance(container, (list, dict)):
        container[key] = item
    else:
        object.__setattr__(container, key, item)


def _rebuilt(container: Any, items: list[Any]) -> Any:
    """A tuple of the same type with other items; the very same tuple where they are the same."""
    if all(item is other for item, other in zip(container, items)):
        return container
    make = getattr(type(container), "_make", type(container))
    return make(items)


def _replaced(value: Any, old: Any, new: Any) -> Any:
    """``value``, a tensor or a tuple of such, with ``new`` for ``old``."""
    if value is old:
        return new
    if isinstance(value, tuple):
        return _rebuilt(value, [_replaced(item, old, new) for item in value])
    return value


def _reached(at: dict[Any, int]) -> dict[Any, int]:
    """For each Node at or behind those in ``at``: the bit mask of the boundaries that backward meets after it."""
    found: dict[Any, int] = {}
    for start in at:
        stack = [start]
        while stack:
            node = stack[-1]
            nexts = [following for following, _ in node.next_functions if following is not None]
            waiting = [following for following in nexts if following not in found]
            if node not in found and waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            found[node] = 0
            for following in nexts:
                found[node] |= found[following] | (1 << at[following] if following in at else 0)
    return found


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
