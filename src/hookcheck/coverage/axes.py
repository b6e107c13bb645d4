"""In which ways do networks under hooks differ? Twelve axes, each with its words, and which a use of a module has.

What hooks watch is one call of a module, so words meet where one call has both: a layer meets no_grad when it runs
there, not when something else in the same network does. What is true of the whole network is true of its every call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from hookcheck.hooks.kinds import KINDS
from hookcheck.oracle.dtypes import FLOATING
from hookcheck.oracle.due import Firing
from hookcheck.oracle.expected import Expected
from hookcheck.oracle.gradient import Gradient
from hookcheck.oracle.graph import CallTrace, Tensor, tensors_in
from hookcheck.topology.catalogue import layer_classes
from hookcheck.topology.contexts import CONTEXTS, GRAD_MODES
from hookcheck.topology.families import FAMILIES
from hookcheck.topology.model import Composite, Recurse, Topology, inside, tensor_words, walk, writes
from hookcheck.topology.primitive import Layer
from hookcheck.topology.tensors import SPARSE_GRADIENT, TENSORS

Word = tuple[str, str]
"""An axis and a word of it."""

Words = tuple[tuple[str, frozenset[str]], ...]
"""Axis by axis the words of it that a use has."""


@dataclass(frozen=True)
class Use:
    """One call of a module in a topology of ``family``, which is run with hooks of ``kinds``: its ``firings``, and how
    often that module is ``called``."""

    family: str
    kinds: tuple[str, ...]
    expected: Expected
    call: CallTrace
    firings: tuple[Firing, ...]
    called: int


@dataclass(frozen=True)
class Axis:
    """One axis: all its ``words``, and ``of``, which gives those of a use."""

    name: str
    words: tuple[str, ...]
    of: Callable[[Use], Iterable[str]]


@lru_cache(maxsize=1)
def axes() -> tuple[Axis, ...]:
    """The axes, in the order in which they are listed."""
    return (
        Axis("hook kind", tuple(KINDS), lambda use: use.kinds),
        Axis("family", tuple(FAMILIES), lambda use: (use.family,)),
        Axis("layer group", (*_groups(), _CONTAINER), lambda use: (_layer_group(use),)),
        Axis("grad mode", ("grad", "no_grad", "inference_mode"), lambda use: (use.call.mode,)),
        Axis("arity", (*_INPUTS, *_OUTPUTS), _arity),
        Axis("None pattern", (*_PATTERNS, "no firing"), _patterns),
        Axis("in-place", ("none", "allowed", "forbidden"), lambda use: (_in_place(use),)),
        Axis("reuse", _REUSE, _reuse),
        Axis("dtype", (*FLOATING, "mixed"), _dtypes),
        Axis("depth", _DEPTHS, lambda use: (_depth(use),)),
        Axis(
            "context",
            (_NONE, *(name for name in CONTEXTS if name not in GRAD_MODES)),
            lambda use: contexts_of(use.expected.topology),
        ),
        Axis(
            "tensor",
            (_PLAIN, *TENSORS, SPARSE_GRADIENT),
            lambda use: tensors_of(use.expected.topology),
        ),
    )


def words(family: str, expected: Expected, kinds: tuple[str, ...] = tuple(KINDS)) -> frozenset[Words]:
    """The words of every use in a topology of ``family``, axis by axis, which is run with hooks of ``kinds``."""
    calls = expected.trace.calls
    called = Counter(call.path for call in calls)
    firings: dict[int, list[Firing]] = {id(call): [] for call in calls}
    for firing in expected.firings:
        firings[id(firing.call)].append(firing)
    uses = (Use(family, kinds, expected, call, tuple(firings[id(call)]), called[call.path]) for call in calls)
    return frozenset(tuple((axis.name, frozenset(axis.of(use))) for axis in axes()) for use in uses)


def contexts_of(topology: Topology) -> frozenset[str]:
    """What the network runs inside of, somewhere; what says whether autograd records is another axis."""
    return frozenset(inside(topology)) - {*GRAD_MODES} or frozenset({_NONE})


def tensors_of(topology: Topology) -> tuple[str, ...]:
    """The classes and layouts of tensors that the network has."""
    return tensor_words(topology) or (_PLAIN,)


def group(layer: type) -> str:
    """The room that a layer's class stands in."""
    return layer.__module__.rpartition(".")[2]


_CONTAINER, _NONE, _PLAIN = "container", "none", "plain"
_INPUTS = ("0 in", "1 in", "2 in", "3+ in")
_OUTPUTS = ("1 out", "2+ out")
_DEPTHS = ("1", "2", "3", "4+")
_REUSE = ("once", "module called again", "shared module", "shared parameter", "recursive")
_STATES = ("all tensors", "some None", "all None", "empty")
_PATTERNS = tuple(f"{side} {state}" for side in ("grad_input", "grad_output") for state in _STATES)


def _groups() -> list[str]:
    return sorted({group(layer) for layer in layer_classes().values()})


def _layer_group(use: Use) -> str:
    """That of the layer that is called; a container is a module that calls others, and operations."""
    return group(type(use.call.module)) if isinstance(use.call.module, Layer) else _CONTAINER


def _arity(use: Use) -> tuple[str, str]:
    """How many positional arguments the call takes, and how many outputs it gives: as many as a hook is told of."""
    return _INPUTS[min(len(use.call.args), 3)], _OUTPUTS[len(use.call.outputs) > 1]


def _patterns(use: Use) -> set[str]:
    """Which entries of grad_input and grad_output are None, in each firing that is due."""
    patterns = {
        f"{side} {_state(gradients)}"
        for firing in use.firings
        for side, gradients in (("grad_input", firing.grad_input), ("grad_output", firing.grad_output))
    }
    return patterns or {"no firing"}


def _state(gradients: tuple[Gradient, ...]) -> str:
    absent = sum(gradient is None for gradient in gradients)
    if not gradients:
        return "empty"
    return "all tensors" if not absent else "all None" if absent == len(gradients) else "some None"


def _in_place(use: Use) -> str:
    """Whether a step within the call works in place, or one writes to what the call was given or gives.

    It is forbidden in a network that writes to what a hooked module was given or gives.
    """
    trace, topology = use.expected.trace, use.expected.topology
    if not writes(topology):
        return "none"
    written = any(tensor.newer is not None for tensor in _tensors(use.call))
    if not written and not writes(Topology(use.call.module, (), ())):
        return "none"
    return "allowed" if trace.allowed is None else "forbidden"


def _reuse(use: Use) -> set[str]:
    """What is used more than once: the module, by one name or two, or by itself; a parameter of it by two names."""
    topology, path, module = use.expected.topology, use.call.path, use.call.module
    reuses = {"module called again"} if use.called > 1 else set()
    if isinstance(module, Composite) and any(isinstance(statement, Recurse) for statement in module.body):
        reuses.add("recursive")
    modules = {name for name, _ in walk(topology.module)} if topology.ties else ()
    for target, source in topology.ties:
        if target in modules:
            reuses |= {"shared module"} if f"{path}.".startswith(f"{source}.") else set()
        elif path in (target.rpartition(".")[0], source.rpartition(".")[0]):
            reuses.add("shared parameter")
    return reuses or {"once"}


def _dtypes(use: Use) -> set[str]:
    """Those of the tensors that hooks see of the call; more than one are mixed."""
    dtypes = {tensor.dtype for tensor in _tensors(use.call)} & {*FLOATING}
    return {*dtypes, "mixed"} if len(dtypes) > 1 else dtypes


def _tensors(call: CallTrace) -> Iterator[Tensor]:
    """The arguments and outputs of a call, those in containers too."""
    return tensors_in((call.given, dict(call.keywords), call.result))


def _depth(use: Use) -> str:
    """How deep the module lies: 1 is the root, containers count."""
    level = len(use.call.path.split(".")) if use.call.path else 0
    return _DEPTHS[min(level, 3)]
