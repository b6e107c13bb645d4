"""What must hooks on someone's model see? What cuts showed, in the words in which clauses ask the oracle in NumPy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from hookcheck.models.cuts import CALLED, Boundary, CutCall, Cuts, Spot
from hookcheck.oracle.due import Firing, TensorCall
from hookcheck.oracle.expected import Expected
from hookcheck.oracle.graph import CallTrace, Node, Pass, Tensor, Trace
from hookcheck.oracle.last_node import NodeCall
from hookcheck.oracle.sweep import Sweep
from hookcheck.oracle.tolerance import close, coarsest
from hookcheck.probe.copying import dtype_as_copied, fields_of, is_container, view_of
from hookcheck.probe.observation import Array, Observation, dtype_of, numbers
from hookcheck.topology.model import Composite, Topology
from hookcheck.topology.tree import Ref

_NOTHING = Topology(Composite((), (), (), Ref("x")), (), ())
"""Stands for the network: nothing is known of its program."""

_PLAIN = (bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.layout)
"""What is compared by what it says of itself."""

_UNKNOWN: Any = object()
"""Stands for the formulas of a Node."""


@dataclass(frozen=True, eq=False)
class NodeRun:
    """A run of the Node that made the first output of a call, as a hook on it saw it.

    That output is number ``slot`` of the Node's ``outputs``; the gradients that it was given have the ``dtypes``.
    ``node`` is the Node's number: calls may share one.
    """

    path: str
    number: int
    handed_on: tuple[Array | None, ...]
    gradient: Array | None
    slot: int
    outputs: int
    dtype: str
    dtypes: frozenset[str]
    node: int


@dataclass(frozen=True, eq=False)
class Crossings:
    """Steps with joined and with single cuts, of which the latter keep only whether there was a gradient.

    ``before`` is the order of the joined ones, ``leaves`` the names of leaves that had a gradient with them.
    """

    joined: Cuts
    single: Cuts
    before: Mapping[int, int]
    leaves: frozenset[str]

    @property
    def dtypes(self) -> frozenset[str]:
        """Those of the tensors at boundaries."""
        return frozenset(spot.dtype for spot in self.spots)

    @property
    def spots(self) -> Iterator[Spot]:
        """The tensors at boundaries."""
        for call in self.joined.calls:
            yield from (*call.entry.spots, *call.exit.spots)

    @property
    def gradients(self) -> Iterator[Array]:
        """All that crossed boundaries."""
        for boundary in self.joined.boundaries:
            for crossing in boundary.crossings:
                yield from (g for g in crossing.gradients.values() if isinstance(g, np.ndarray))


def agree(observed: Array, expected: Array, dtype: str, device: str = "cpu") -> bool:
    """Whether two arrays differ by no more than the table of tolerances explains for ``dtype``."""
    if observed.shape != expected.shape:
        return False
    if np.array_equal(observed, expected):
        return True
    wide = np.complex128 if "c" in (observed.dtype.kind, expected.dtype.kind) else np.float64
    return close(observed.astype(wide), expected.astype(wide), dtype, device)


class Reference(Expected):
    """What is due on the calls at ``paths`` of a model."""

    def __init__(
        self,
        crossings: Crossings,
        plain: Observation,
        modules: Mapping[str, torch.nn.Module],
        paths: Iterable[str],
        nodes: Iterable[NodeRun] = (),
        names: Collection[str] | None = None,
    ) -> None:
        """``plain`` is the step without cuts; ``nodes`` are known where legacy hooks are judged; ``names`` are the
        leaves and outputs that are looked at, None for all."""
        super().__init__(_NOTHING, {})
        self.crossings = crossings
        self.seen = plain
        self.modules = modules
        self.paths = frozenset(paths)
        self.nodes = tuple(nodes)
        self.names = names
        self._single = {(call.path, call.number): call for call in crossings.single.calls}

    @cached_property
    def of(self) -> dict[int, CutCall]:
        """The call with cuts that each call is about, by ``id``."""
        return {id(call): cut for call, cut in zip(self._calls, self._cut_calls)}

    @cached_property
    def _cut_calls(self) -> list[CutCall]:
        called = (call for call in self.crossings.joined.calls if call.way == CALLED)
        return [call for call in called if call.path in self.paths]

    @cached_property
    def _calls(self) -> list[CallTrace]:
        nodes = {(run.path, run.number): self._nodes[run.node] for run in self.nodes}
        return [_call(c, self.modules[c.path], nodes.get((c.path, c.number))) for c in self._cut_calls]

    @cached_property
    def _nodes(self) -> dict[int, Node]:
        """The Nodes that made first outputs, by number; the index of one that ran later is lower, as if made before."""
        ran = list(dict.fromkeys(run.node for run in self.nodes))
        return {node: Node(len(ran) - 1 - turn, _UNKNOWN, (), ()) for turn, node in enumerate(ran)}

    @cached_property
    def trace(self) -> Trace:
        """Calls, leaves and names; there are no steps."""
        backward = Pass((), (), None)
        leaves = {
            name: Tensor(np.zeros(0), True, dtype_of(array) if array is not None else "float32", name=name)
            for name, array in self.seen.gradients.items()
        }
        names = {"output": _tensors(self.seen.values["output"])}
        trace = Trace([], self._calls, [backward] * self.crossings.joined.passes, leaves, names, {self.dtype})
        trace.recorded = self.crossings.joined.recorded
        place = {id(cut): i for i, cut in enumerate(self.crossings.joined.ended)}
        ended = (call for call in self._calls if self.of[id(call)].finished)
        trace.ended = sorted(ended, key=lambda call: place[id(self.of[id(call)])])
        return trace

    @cached_property
    def dtype(self) -> str:
        """The coarsest floating dtype of what crosses boundaries."""
        return coarsest(self.crossings.dtypes)

    def close(self, observed: Array, expected: Array, measured: bool = True) -> bool:
        """Whether they differ by no more than the table of tolerances explains."""
        return agree(observed, expected, self.dtype, self.device)

    @cached_property
    def hooked(self) -> tuple[Sweep, ...]:
        """Which leaves have a gradient where boundaries are joined."""
        return (Sweep(asked={name: np.zeros(0) for name in self.crossings.leaves}),)

    @cached_property
    def plain(self) -> tuple[Sweep, ...]:
        """And which without any; there Nodes run as they did under hooks on them."""
        earlier = {node.index: -1 << (node.index + 1) for node in self._nodes.values()}
        return (Sweep(asked={name: array for name, array in self.leaf_gradients.items()}, earlier=earlier),)  # noqa: C416

    @cached_property
    def firings(self) -> tuple[Firing, ...]:
        """As the documented rules of full backward hooks demand."""
        return self._due(lambda cut: cut.entry if cut.entry.cut else cut.exit)

    @cached_property
    def pre_firings(self) -> tuple[Firing, ...]:
        """As those of their pre-hooks demand."""
        return self._due(lambda cut: cut.exit)

    def _due(self, at: Any) -> tuple[Firing, ...]:
        return tuple(
            self._firing(call, cut, at(cut), number)
            for number in range(self.crossings.joined.passes)
            for call, cut in zip(self._calls, self._cut_calls)
            if at(cut).crossed(number) is not None
            and any(t is not None and t.requires_grad for t in call.outputs_inside)
        )

    def _firing(self, call: CallTrace, cut: CutCall, at: Boundary, number: int) -> Firing:
        entry, exit = cut.entry.crossed(number), cut.exit.crossed(number)
        inputs = _placed(call.args, cut.entry, entry, zeros=True) if at is cut.entry else (None,) * len(call.args)
        outputs = _placed(call.outputs_inside, cut.exit, exit)
        alone = self._single.get((cut.path, cut.number))
        without = () if alone is None else _placed(call.outputs_inside, alone.exit, alone.exit.crossed(number))
        boundary = None if alone is None else alone.entry if at is cut.entry else alone.exit
        crossed = boundary is not None and any(g is not None for g in (boundary.crossed(number) or {}).values())
        doubtful = (i for i, (j, a) in enumerate(zip(outputs, without)) if j is not None and a is None)
        return Firing(
            call, number, inputs, outputs, not cut.entry.cut, at.index, self.crossings.before.get(at.index, 0),
            certain=crossed, open=frozenset(doubtful),
        )  # fmt: skip

    @cached_property
    def of_first_output(self) -> tuple[NodeCall, ...]:
        """What a hook on the Node that made the first output saw: by that known deviations of legacy hooks are told."""
        calls = {(call.path, call.number): call for call in self._calls}
        return tuple(
            NodeCall(
                calls[run.path, run.number],
                0,
                run.gradient,
                (run.handed_on,),
                slot=run.slot,
                outputs=run.outputs,
                dtype=run.dtype,
                dtypes=run.dtypes,
            )
            for run in self.nodes
            if (run.path, run.number) in calls
        )

    @cached_property
    def leaf_gradients(self) -> dict[str, Array]:
        """As the step without hooks gives them."""
        return {name: numbers(array) for name, array in self.seen.gradients.items() if array is not None}

    @cached_property
    def leaf_calls(self) -> tuple[TensorCall, ...]:
        """One for each leaf that has a gradient."""
        return tuple(TensorCall(name, 0, array) for name, array in self.leaf_gradients.items() if self._asked(name))

    @cached_property
    def accumulations(self) -> tuple[TensorCall, ...]:
        """The same: every ``.grad`` begins with None."""
        return self.leaf_calls

    @cached_property
    def output_calls(self) -> tuple[TensorCall, ...]:
        """The gradient of each output tensor; unknown where it came in as it is, is used inside of
        the call as well, or was written to afterwards."""
        calls = []
        for number in range(self.crossings.joined.passes):
            for call, cut in zip(self._calls, self._cut_calls):
                gradients, unknown = self._at_outputs(call, cut, number)
                leaves = {spot.place for spot in cut.exit.spots if spot.leaf}
                for place, gradient in enumerate(gradients):
                    name, leaf = f"{cut.path}[{place}]", place in leaves
                    if self._asked(name) and (unknown or gradient is not None):
                        calls.append(TensorCall(name, number, gradient, cut.number, leaf, unknown))
        return tuple(calls)

    def _at_outputs(self, call: CallTrace, cut: CutCall, number: int) -> tuple[tuple[Any, ...], bool]:
        """The gradients of its outputs in one backward pass, None where a run without hooks has none; and whether they
        are unknown."""
        alone = self._single.get((cut.path, cut.number))
        gradients = _placed(call.outputs_inside, cut.exit, cut.exit.crossed(number))
        if alone is None:
            return gradients, True
        there = _placed(call.outputs_inside, alone.exit, alone.exit.crossed(number))
        without = tuple(None if other is None else gradient for gradient, other in zip(gradients, there))
        return without, cut.passes or cut.used or bool(cut.overwritten)

    def _asked(self, name: str) -> bool:
        return self.names is None or name in self.names

    @property
    def retained(self) -> tuple[TensorCall, ...]:
        """What each output tensor that is no leaf has in the end: its gradient, None where there is none; unknown
        where several backward passes may add to it as well."""
        several = self.crossings.joined.passes > 1
        calls = []
        for call, cut in zip(self._calls, self._cut_calls):
            gradients, unknown = self._at_outputs(call, cut, 0)
            for spot in cut.exit.spots if cut.grad else ():
                name = f"{cut.path}[{spot.place}]"
                if spot.place is not None and spot.requires_grad and not spot.leaf and self._asked(name):
                    gradient = gradients[spot.place]
                    calls.append(TensorCall(name, 0, gradient, cut.number, False, unknown or several))
        return tuple(calls)

    def starts_at(self, backward: Pass) -> str:
        """A step: what models give is none of their leaves."""
        return "step"

    def known_gradients(self, call: CallTrace, backward: int) -> dict[str, Array]:
        """Gradients at the boundaries of the call and of those inside of it, and of the module's parameters."""
        cut = self.of[id(call)]
        below = f"{cut.path}." if cut.path else ""
        known: dict[str, Array] = {}
        for other in self.crossings.joined.calls:
            if other.path != cut.path and not other.path.startswith(below):
                continue
            owner = f"{other.path[len(below) :]}." if other.path != cut.path else ""
            for side, boundary in (("input", other.entry), ("output", other.exit)):
                crossed = boundary.crossed(backward) or {}
                known.update(
                    {f"{owner}{side}[{boundary.spots[i].where}]": g for i, g in crossed.items() if g is not None}
                )
        for name, array in self.leaf_gradients.items():
            if name.startswith(below):
                known[name[len(below) :]] = array
        return known


def remembered(value: Any) -> Any:
    """An argument or result as clauses compare it: tensors with their numbers, in their own memory, ``...`` for what is
    not compared: objects that say where they are in memory alone, or something else the next time."""
    if isinstance(value, torch.Tensor):
        return Tensor(numbers(view_of(value)), value.requires_grad, dtype_as_copied(value))
    if isinstance(value, dict):
        return {str(key): remembered(item) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(map(remembered, value))
    if is_container(value) and not isinstance(value, type):
        return SimpleNamespace(**{name: remembered(item) for name, item in fields_of(value)})
    return value if value is None or isinstance(value, _PLAIN) else Ellipsis


def _call(cut: CutCall, module: Any, node: Node | None) -> CallTrace:
    args, kwargs = cut.given or ((), {})
    outputs = _by_place(cut.exit, cut.outputs)
    return CallTrace(
        cut.path, cut.number, module, "grad" if cut.grad else "no_grad", cut.after, args, kwargs,
        cut.left or ((), {}), cut.result, _by_place(cut.entry, cut.arguments), outputs, outputs,
        _first(outputs, node), cut.container,
    )  # fmt: skip


def _first(outputs: Sequence[Tensor | None], node: Node | None) -> Tensor | None:
    """The first output, made by ``node`` where that is known; a hook looks for it in containers as well."""
    tensor = next((t for t in outputs if t is not None), None)
    if node is None:
        return tensor
    return Tensor(np.zeros(()), True, "float32" if tensor is None else tensor.dtype, node)


def _by_place(boundary: Boundary, count: int) -> tuple[Tensor | None, ...]:
    spots = {spot.place: spot for spot in boundary.spots if spot.place is not None}
    return tuple(
        Tensor(np.broadcast_to(np.zeros(()), spot.shape), spot.requires_grad, spot.dtype) if spot else None
        for spot in map(spots.get, range(count))
    )


def _placed(
    tensors: tuple[Tensor | None, ...], boundary: Boundary, crossed: Mapping[int, Any] | None, zeros: bool = False
) -> tuple[Any, ...]:
    """The gradients by place; with ``zeros`` for those that are absent, as a Node gives them that joins them."""
    by_place = {boundary.spots[i].place: gradient for i, gradient in (crossed or {}).items()}
    return tuple(
        None if t is None else t.array if zeros and by_place.get(place) is None else by_place.get(place)
        for place, t in enumerate(tensors)
    )


def _tensors(copy: Any) -> Any:
    """What came out of the model: tensors that a boundary gave."""
    if isinstance(copy, np.ndarray):
        return Tensor(numbers(copy), True, dtype_of(copy), Node(0, None, (), ()))
    if isinstance(copy, dict):
        return {key: _tensors(item) for key, item in copy.items()}
    return type(copy)(map(_tensors, copy)) if isinstance(copy, (tuple, list)) else copy
