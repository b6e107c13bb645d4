"""In which ways do networks under hooks differ? Ten axes, each with its words, and which of them a topology has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hookcheck.oracle.dtypes import FLOATING
from hookcheck.oracle.expected import Expected
from hookcheck.oracle.gradient import Gradient
from hookcheck.oracle.graph import Tensor, Trace
from hookcheck.probe.kinds import KINDS
from hookcheck.topology.catalogue import layer_classes
from hookcheck.topology.families import FAMILIES
from hookcheck.topology.model import Apply, Recurse, statements, walk
from hookcheck.topology.primitive import Layer, SingleStep

Words = Mapping[str, frozenset[str]]
"""For each axis the words of it that a topology has."""


@dataclass(frozen=True)
class Axis:
    """One axis: all its ``words``, and ``of``, which gives those of a topology from its family and its oracle."""

    name: str
    words: tuple[str, ...]
    of: Callable[[str, Expected], Iterable[str]]


@lru_cache(maxsize=1)
def axes() -> tuple[Axis, ...]:
    """The axes, in the order in which they are listed."""
    return (
        Axis("hook kind", tuple(KINDS), lambda family, expected: KINDS),
        Axis("family", tuple(FAMILIES), lambda family, expected: (family,)),
        Axis("layer group", (*_groups(), "none"), lambda family, expected: _layer_groups(expected.trace)),
        Axis("grad mode", ("grad", "no_grad", "inference_mode"), lambda family, expected: _modes(expected.trace)),
        Axis("arity", (*_INPUTS, *_OUTPUTS), lambda family, expected: _arity(expected.trace)),
        Axis("None pattern", (*_PATTERNS, "no firing"), lambda family, expected: _patterns(expected)),
        Axis("in-place", ("none", "allowed", "forbidden"), lambda family, expected: (_in_place(expected),)),
        Axis("reuse", _REUSE, lambda family, expected: _reuse(expected)),
        Axis("dtype", (*FLOATING, "mixed"), lambda family, expected: _dtypes(expected.trace)),
        Axis("depth", _DEPTHS, lambda family, expected: (_depth(expected),)),
    )


def words(family: str, expected: Expected) -> Words:
    """The words of a topology of ``family``, axis by axis; every topology is run with every hook kind."""
    return {axis.name: frozenset(axis.of(family, expected)) for axis in axes()}


_INPUTS = ("0 in", "1 in", "2 in", "3+ in")
_OUTPUTS = ("1 out", "2+ out")
_DEPTHS = ("1", "2", "3", "4+")
_REUSE = ("once", "module called again", "shared module", "shared parameter", "recursive")
_STATES = ("all tensors", "some None", "all None", "empty")
_PATTERNS = tuple(f"{side} {state}" for side in ("grad_input", "grad_output") for state in _STATES)


def _group(layer: type) -> str:
    """The room that a layer's class stands in."""
    return layer.__module__.rpartition(".")[2]


def _groups() -> list[str]:
    return sorted({_group(layer) for layer in layer_classes().values()})


def _layer_groups(trace: Trace) -> set[str]:
    """Those of the layers that are called."""
    return {_group(type(call.module)) for call in trace.calls if isinstance(call.module, Layer)} or {"none"}


def _modes(trace: Trace) -> set[str]:
    return {call.mode for call in trace.calls}


def _arity(trace: Trace) -> Iterator[str]:
    """How many positional arguments each call takes, and how many outputs it gives: as many as a hook is told of."""
    for call in trace.calls:
        yield _INPUTS[min(len(call.args), 3)]
        yield _OUTPUTS[len(call.outputs) > 1]


def _patterns(expected: Expected) -> set[str]:
    """Which entries of grad_input and grad_output are None, in each firing that is due."""
    found = {
        f"{side} {_state(gradients)}"
        for firing in expected.firings
        for side, gradients in (("grad_input", firing.grad_input), ("grad_output", firing.grad_output))
    }
    return found or {"no firing"}


def _state(gradients: tuple[Gradient, ...]) -> str:
    absent = sum(gradient is None for gradient in gradients)
    if not gradients:
        return "empty"
    return "all tensors" if not absent else "all None" if absent == len(gradients) else "some None"


def _in_place(expected: Expected) -> str:
    """Whether a step works in place; forbidden is one that writes to what a hooked module was given or gives."""
    ops = [statement.op for statement in statements(expected.topology) if isinstance(statement, Apply)]
    layers = [call.module for call in expected.trace.calls if isinstance(call.module, SingleStep)]
    if expected.trace.allowed is not None:
        return "forbidden"
    return "allowed" if any(step.writes for step in (*ops, *layers)) else "none"


def _reuse(expected: Expected) -> set[str]:
    """What is used more than once: a module, by one name or two; a parameter by two names; a module by itself."""
    topology = expected.topology
    modules = {path for path, _ in walk(topology.module)}
    found = {"shared module" if target in modules else "shared parameter" for target, _ in topology.ties}
    if any(isinstance(statement, Recurse) for statement in statements(topology)):
        found.add("recursive")
    if any(call.number for call in expected.trace.calls):
        found.add("module called again")
    return found or {"once"}


def _dtypes(trace: Trace) -> set[str]:
    found = {tensor.dtype for tensor in _tensors(trace)} & {*FLOATING}
    return {*found, "mixed"} if len(found) > 1 else found


def _tensors(trace: Trace) -> Iterator[Tensor]:
    """The tensors that there are; ``trace.dtypes`` counts the constants of formulas too, which no hook sees."""
    yield from trace.leaves.values()
    several: list[tuple[Any, ...]] = [node.inputs for node in trace.nodes]
    several += [call.outputs for call in trace.calls]
    several += [backward.roots for backward in trace.passes]
    yield from (tensor for tensors in several for tensor in tensors if tensor is not None)


def _depth(expected: Expected) -> str:
    """How many modules lie in one another, containers counted."""
    levels = (len(path.split(".")) if path else 0 for path, _ in walk(expected.topology.module))
    return _DEPTHS[min(max(levels), 3)]
