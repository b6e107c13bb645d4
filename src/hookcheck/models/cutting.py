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
from functools import wraps
from typing import Any

import torch

from hookcheck.models.containers import keyed, put, rebuilt, replaced
from hookcheck.models.cuts import CALLED, DIRECT, Boundary, CutCall, Cuts, Keep, Spot
from hookcheck.probe.copying import dtype_as_copied, fields_of, is_container, view_of

_CALLER = torch.nn.Module._call_impl.__code__.co_filename


class _CutIdentity(torch.autograd.Function):
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
    model: torch.nn.Module,
    joined: bool,
    keep: Keep = torch.Tensor.detach,
    remember: Callable[[Any], Any] | None = None,
    chosen: Callable[[str], bool] = lambda path: True,
) -> Iterator[Cuts]:
    """While it is open, calls of ``model`` and its sub-modules at ``chosen`` paths have cuts; scripted ones never.

    ``keep`` is what stays of each gradient; ``remember``, if given, what stays of arguments and results, which need no
    identities.
    """
    cuts = Cuts(joined, keep, remember)
    modules = {
        path: module
        for path, module in model.named_modules()
        if chosen(path) and not isinstance(module, torch.jit.ScriptModule)
    }
    forwards = {path: vars(module).get("forward") for path, module in modules.items()}
    base: Any = torch.nn.Module
    original = base.__call__
    paths = {}
    for path, module in modules.items():
        forward = vars(module)["forward"] = _forward(cuts, path, module.forward)
        paths[forward] = path
    base.__call__ = _called(cuts, modules, paths, original)
    of_tensors: Any = torch.Tensor
    noting = {"register_hook": cuts.note_hook, "detach_": cuts.note_detached}
    methods = {name: getattr(of_tensors, name) for name in noting}
    for name, note in noting.items():
        setattr(of_tensors, name, _noting(note, methods[name]))
    try:
        with cuts.counting(), _noting_results(cuts, modules):
            yield cuts
    finally:
        base.__call__ = original
        for name, method in methods.items():
            setattr(of_tensors, name, method)
        for path, module in modules.items():
            before = forwards[path]
            if before is None:
                del vars(module)["forward"]
            else:
                vars(module)["forward"] = before
        for boundary in cuts.boundaries:
            boundary.nodes.clear()  # they hold the graph


def _forward(cuts: Cuts, path: str, forward: Callable[..., Any]) -> Callable[..., Any]:
    """A forward with identities on what goes in; through ``__call__`` those on what comes out follow behind hooks."""

    @wraps(forward)
    def run(*args: Any, **kwargs: Any) -> Any:
        way = CALLED if sys._getframe(1).f_code.co_filename == _CALLER else DIRECT
        call = cuts.begin(path, way, args, kwargs)
        entry = _Crosser(cuts, call.entry, outputs=False)
        try:
            inner = entry.swapped(dict(enumerate(args)))
            named = entry.swapped(kwargs, positional=False)
            entry.cut()
            call.batched = any(map(_batched, entry.tensors))
            for i, inner_tensor in entry.inner.items():
                cuts.alias(call, entry.spots[i].where, False, entry.tensors[i], inner_tensor)
            result = entry.restored(forward(*(inner[i] for i in range(len(args))), **named))
            call.left = cuts.remember((args, kwargs)) if cuts.remember else None
            call.entered = (*entry.tensors, *entry.identities)
            call.finished = True
            return result if way == CALLED else _crossed(cuts, call, result)
        finally:
            entry.restore_containers()
            if way == DIRECT:
                cuts.end(call)

    return run


def _batched(tensor: torch.Tensor) -> bool:
    """Whether ``torch.vmap`` made it: it hides that there is a gradient."""
    functorch = getattr(torch._C, "_functorch", None)  # part of torch since 2.0
    return functorch is not None and bool(functorch.is_batchedtensor(tensor))


def _called(
    cuts: Cuts, modules: dict[str, torch.nn.Module], paths: dict[Any, str], original: Callable[..., Any]
) -> Callable[..., Any]:
    """``Module.__call__`` with identities on what comes out, which forward hooks that are there may have replaced.

    ``paths`` has the path of each forward that `_forward` made, ``modules`` the module at each path. Its forward may be
    a function that someone has put there, and then belongs to no module.
    """

    @wraps(original)
    def run(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        forward: Any = vars(module).get("forward")
        path = paths.get(forward) if callable(forward) else None
        if path is None:
            return original(module, *args, **kwargs)
        method = forward.__wrapped__
        if getattr(method, "__self__", None) is modules[path] is not module:  # a replica has its original's attributes
            rebound = vars(module)["forward"] = _forward(cuts, path, method.__func__.__get__(module))
            paths[rebound] = path
            if module._forward_hooks is not modules[path]._forward_hooks:  # those of a replica are the very same
                cuts.copied.add(path)
        depth = len(cuts.open)
        try:
            result = original(module, *args, **kwargs)
            if len(cuts.open) > depth:
                call = cuts.calls[cuts.open[-1]]
                call.used = bool(module._backward_hooks or getattr(module, "_backward_pre_hooks", None))
                result = _crossed(cuts, call, result)
            return result
        finally:
            if len(cuts.open) > depth:
                cuts.end(cuts.calls[cuts.open[-1]])

    return run


@contextmanager
def _noting_results(cuts: Cuts, modules: dict[str, torch.nn.Module]) -> Iterator[None]:
    """Tells the cuts where backward hooks that are there return something."""

    def noting(path: str, hook: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(hook)
        def run(*args: Any) -> Any:
            result = hook(*args)
            cuts.acting |= set() if result is None else {path}
            return result

        return run

    tables = [
        (path, table)
        for path, module in modules.items()
        for name, table in vars(module).items()
        if name in ("_backward_hooks", "_backward_pre_hooks")
    ]
    originals = [dict(table) for _, table in tables]
    for path, table in tables:
        table.update({key: noting(path, hook) for key, hook in table.items()})
    try:
        yield
    finally:
        for (_, table), hooks in zip(tables, originals):
            table.update({key: hook for key, hook in hooks.items() if key in table})


def _noting(note: Callable[[torch.Tensor], None], original: Callable[..., Any]) -> Callable[..., Any]:
    """A method of tensors that ``note`` is called before."""

    @wraps(original)
    def run(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        note(tensor)
        return original(tensor, *args, **kwargs)

    return run


def _crossed(cuts: Cuts, call: CutCall, result: Any) -> Any:
    """What a call gives, with identities on its tensors."""
    call.result = cuts.remember(result) if cuts.remember else None
    call.container = "tensor" if isinstance(result, torch.Tensor) else type(result).__name__
    several = isinstance(result, tuple)
    call.outputs = len(result) if several else 1
    call.exit.index = cuts.index()  # behind those of the calls inside, which may be of this very module
    crosser = _Crosser(cuts, call.exit, outputs=True)
    given = crosser.swapped(dict(enumerate(result)) if several else {0: result})
    crosser.cut()
    call.used |= any(tensor._backward_hooks for tensor in crosser.tensors)
    call.passes = any(tensor is other for tensor in crosser.tensors for other in call.entered)
    call.entered = ()
    for i, inner_tensor in crosser.inner.items():
        cuts.alias(call, crosser.spots[i].where, True, crosser.tensors[i], inner_tensor)
    return rebuilt(result, [given[i] for i in range(len(result))]) if several else given[0]


_SORTS = {
    "torch.sparse_coo": "sparse COO",
    "torch.sparse_csr": "sparse CSR",
    "torch._mkldnn": "MKLDNN",
    "torch.jagged": "jagged",
}  # fmt: skip


def _spot(where: str, place: int | None, tensor: torch.Tensor) -> Spot:
    nested = getattr(tensor, "is_nested", False)
    sort = _SORTS.get(str(tensor.layout), "nested" if nested else "")
    return Spot(where, place, tensor.requires_grad, _sizes(tensor), dtype_as_copied(tensor), sort, tensor.is_leaf)


def _sizes(tensor: torch.Tensor) -> tuple[int, ...]:
    """The shape; of a nested tensor that of its numbers as they are copied."""
    nested = getattr(tensor, "is_nested", False)
    return view_of(tensor).shape if nested else tuple(tensor.shape)


class _Crosser:
    """Puts the identities on one side of one call.

    Tensors are looked for first, then all are cut at once, then put in place: tuples are made anew, of lists, dicts and
    dataclasses the items are replaced, for whoever holds the container must see what the call does to it.
    """

    def __init__(self, cuts: Cuts, boundary: Boundary, outputs: bool) -> None:
        self.cuts = cuts
        self.boundary = boundary
        self.outputs = outputs
        self.tensors: list[torch.Tensor] = []
        self.spots: list[Spot] = []
        self.pairs: list[tuple[Any, Any]] = []
        self._undo: list[tuple[Any, Any, Any, Any]] = []
        self._seen: set[int] = set()
        self.inner: dict[int, Any] = {}
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
            self.spots.append(_spot(where, place, value))
            self.tensors.append(value)
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
        if not chosen or self.cuts.remember or not torch.is_grad_enabled():
            return
        self.boundary.cut = True
        for group in [chosen] if self.cuts.joined else [[i] for i in chosen]:
            tensors = [self.tensors[i] for i in group]
            identities = _CutIdentity.apply(self.cuts, self.boundary, tuple(group), *tensors)  # type: ignore[no-untyped-call]
            self.boundary.nodes.append(identities[0].grad_fn)
            for i, tensor in zip(group, identities):
                self.inner[i] = tensor
                if not self.outputs:
                    self.pairs.append((self.tensors[i], tensor))
        numbers = iter(range(len(self.tensors)))
        self._seen.clear()
        for root in self._roots:
            for key, value in list(root.items()):
                root[key] = self._put(value, numbers)

    def _put(self, value: Any, numbers: Iterator[int]) -> Any:
        """``value`` with the tensors that the identities gave, looked at in the order of `_look`."""
        if isinstance(value, torch.Tensor):
            return self.inner.get(next(numbers), value)
        if not is_container(value) or isinstance(value, type) or id(value) in self._seen:
            return value
        self._seen.add(id(value))
        items = [(key, item, self._put(item, numbers)) for key, item in keyed(value)]
        if all(item is other for _, item, other in items):
            return value
        if isinstance(value, tuple):
            return rebuilt(value, [other for _, _, other in items])
        for key, item, other in items:
            if item is not other:
                put(value, key, other)
                self._undo.append((value, key, item, other))
        return value

    @property
    def identities(self) -> tuple[Any, ...]:
        """The tensors of the identities."""
        return (*self.inner.values(),)

    def restored(self, result: Any) -> Any:
        """Writes back what the call wrote to, in the history of the caller's tensor as well; and gives ``result``."""
        for outer, inner in self.pairs:
            if inner._version:
                outer.copy_(inner)
                result = replaced(result, inner, outer)
        return result

    def restore_containers(self) -> None:
        """Puts the caller's own tensors back into the caller's containers, where they are still the identities'."""
        for container, key, item, other in reversed(self._undo):
            if dict(keyed(container)).get(key) is other:
                put(container, key, item)
        self._undo.clear()
