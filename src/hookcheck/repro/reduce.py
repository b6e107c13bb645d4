"""A smaller case that shows the same fault: steps over a topology as plain data, each taken if the fault stays.

Nothing is drawn: from the same case the same steps lead to the same end. Most steps are structural, over the JSON of
the topology: a part is left out, a number becomes smaller. Few of them give a program that runs, so each is tried out
on the oracle before torch is asked. The others know what a topology is: one call alone, a statement passed by.
"""

from __future__ import annotations

import gc
import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import KINDS, HookKind
from hookcheck.oracle.expected import Expected
from hookcheck.repro.calls import calls_alone
from hookcheck.topology import model
from hookcheck.topology.catalogue import layer_classes, op_classes
from hookcheck.topology.codec import canonical, decode, encode
from hookcheck.topology.model import Apply, Backward, Call, Composite, Grad, Topology, Within, size, statements, walk
from hookcheck.topology.ops.elementwise import Pow
from hookcheck.topology.source import source
from hookcheck.topology.values import WHOLE, parameter_shapes, values

Content = Any
"""A topology, or a part of one, as JSON has it."""

Shows = Callable[[Topology, HookKind], bool]
"""Whether a network shows the fault with hooks of a kind."""

MOST = 4000
"""How many networks are tried at most."""

INVALID = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""What a program that does not run raises in oracle or source."""


NO_SIZES = ("seed", "path", "exponent")
"""Numbers under these names do not say how large something is."""


def _frills(kind: HookKind) -> tuple[str, bool, bool]:
    return kind.then, kind.scope == "global", kind.kwargs


SIMPLER = {
    kind.name: tuple(
        other.name
        for other in KINDS.values()
        if (other.call, other.variant) == (kind.call, kind.variant) and _frills(other) < _frills(kind)
    )
    for kind in KINDS.values()
}
"""By a hook kind's name those that are called for the same and are simpler: without a chain, local, without kwargs."""


def reduced(
    topology: Topology, kind: HookKind, shows: Shows, step: Callable[[int], None] = lambda tried: None
) -> tuple[Topology, HookKind]:
    """The smallest network and the simplest hook kind that the steps lead to and that ``shows`` still.

    ``step`` is called with the number of networks tried so far, before each.
    """
    count = itertools.count()

    def holds(candidate: Topology, hook: HookKind) -> bool:
        step(next(count))
        try:
            return shows(candidate, hook)
        except (*INVALID, RuntimeError):
            # An operation that only a second look at rounding comes to, or a tensor that torch cannot look into, as a
            # nested one of nothing.
            return False

    gc.collect()
    gc.freeze()  # what is here already is looked at in no collection of what a run leaves
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a mean over nothing, where a step leaves nothing
            return _simplest(topology, kind, holds)
    finally:
        gc.unfreeze()


def _simplest(topology: Topology, kind: HookKind, holds: Shows) -> tuple[Topology, HookKind]:
    for name in SIMPLER[kind.name]:
        if holds(topology, KINDS[name]):
            kind = KINDS[name]
            break
    return _down(topology, kind, holds), kind


def _down(topology: Topology, kind: HookKind, holds: Shows) -> Topology:
    """The last of the steps that are taken; after each one the next steps are tried, since those before it, which did
    not show the fault, will hardly do so now. They are tried again at the end."""
    tried: set[str] = set()
    first, smallest = 0, False
    while not smallest:
        smallest = first == 0
        for place, candidate in enumerate(_smaller(topology)):
            text = canonical(candidate)
            if place < first or text in tried or len(tried) >= MOST:
                continue
            tried.add(text)
            if _runs(candidate) and holds(candidate, kind):
                topology, first, smallest = candidate, place, False
                break
        else:
            first = 0
    return topology


def weight(topology: Topology) -> tuple[int, int, bool, bool, int]:
    """How much there is to read: statements and modules, elements, dtype, numbers, and the rest of the text.

    A backward that creates a graph weighs more, since torch itself warns of the cycle that it leaves, and so does what
    computes nothing, a module or a power of one: people would ask what it is there for.
    """
    steps, elements = size(topology)
    steps += sum(isinstance(s, Apply) and s.op == Pow(1) for s in statements(topology))
    steps += 3 * sum(isinstance(s, Backward) and s.create_graph for s in statements(topology))
    steps += 2 * sum(isinstance(module, Composite) and not _computes(module) for _, module in walk(topology.module))
    elements += sum(map(prod, parameter_shapes(topology).values()))
    return steps, elements, topology.dtype != "float32", not topology.counting, len(canonical(topology))


def _computes(module: Composite) -> bool:
    return any(isinstance(statement, (Apply, Call, Within)) for statement in module.body)


def _runs(topology: Topology) -> bool:
    """Whether it has a source and the oracle can run it, forward and backward."""
    try:
        compile(source(topology).script(), "<topology>", "exec")  # a context without statements has a source
        expected = Expected(topology, values(topology))
        asking = [s for s in statements(topology) if isinstance(s, Grad)]  # newer torches refuse to give no gradient
        return bool(expected.gradients) and bool(expected.trace.calls) and all(s.inputs for s in asking)
    except (*INVALID, HookcheckError):
        return False


def _smaller(topology: Topology) -> Iterator[Topology]:
    """Networks that are one step away and lighter, the longest steps first."""
    known, full = weight(topology), _full(topology)
    for candidate in itertools.chain(_leaps(topology), one_step_away(topology)):
        try:
            lighter = weight(candidate) < known and _full(candidate) >= full
        except (*INVALID, HookcheckError):
            continue
        if lighter:
            yield candidate


def _full(topology: Topology) -> bool:
    """Whether every input and every parameter has entries."""
    return all(map(prod, (*(i.shape for i in topology.inputs), *parameter_shapes(topology).values())))


def _leaps(topology: Topology) -> Iterator[Topology]:
    return calls_alone(topology, Expected(topology, values(topology)).trace)


def one_step_away(topology: Topology) -> Iterator[Topology]:
    """Networks that a structural step leads to, whether they run or not."""
    yield from decoded(_contents(encode(topology)))
    if not topology.counting:
        yield replace(topology, counting=True)
    if topology.dtype != "float32":
        inputs = tuple(replace(i, dtype="") for i in topology.inputs)
        yield replace(topology, dtype="float32", inputs=inputs)
        yield replace(topology, dtype="float32")


def decoded(contents: Iterator[Content]) -> Iterator[Topology]:
    """The topologies among them."""
    for content in contents:
        try:
            yield decode(content)
        except (*INVALID, HookcheckError):
            continue


def _contents(content: Content) -> Iterator[Content]:
    yield from edited(content, _child)
    yield from _passed_by(content)
    yield from edited(content, _without_an_item)
    yield from _without_argument(content)
    yield from _without_keyword(content)
    yield from edited(content, _without_a_field)
    yield from edited(content, _without_parameters)
    for large in sorted(set(_numbers(content)), reverse=True):
        for small in (1, 2, 3):
            if small < large:
                yield _replaced(content, large, small)
    yield from edited(content, _plain)
    yield from edited(content, _smaller_number)


def edited(content: Content, edits: Callable[[Content], Iterator[Content]]) -> Iterator[Content]:
    """``content`` with an edit at one place, outer places first."""
    yield from edits(content)
    if isinstance(content, dict):
        for key, item in content.items():
            for new in edited(item, edits) if key not in ("name", "out", "path", "seed") else ():
                yield {**content, key: new}
    elif isinstance(content, list):
        for i, item in enumerate(content):
            for new in edited(item, edits):
                yield [*content[:i], new, *content[i + 1 :]]


def _child(part: Content) -> Iterator[Content]:
    """A module of others: one of those in its place. A context: its statements, which `_spliced` takes out."""
    if isinstance(part, dict) and part.get("type") in ("Sequential", "Composite"):
        for child in part["children"]:
            yield child[1] if part["type"] == "Composite" else child
    if isinstance(part, list):
        for i, item in enumerate(part):
            if isinstance(item, dict) and item.get("type") == "Within":
                yield [*part[:i], *item["body"], *part[i + 1 :]]


def _without_an_item(part: Content) -> Iterator[Content]:
    if isinstance(part, list) and any(isinstance(item, (dict, list, str)) for item in part):
        for i in range(len(part)):
            yield [*part[:i], *part[i + 1 :]]


def _without_a_field(part: Content) -> Iterator[Content]:
    if isinstance(part, dict):
        whole = {"domain"} if part.get("domain") in WHOLE else set()  # a layer that takes a mask takes no numbers
        for name in sorted(_optional(part.get("type", "")) & part.keys() - whole):
            yield {key: item for key, item in part.items() if key != name}


def _without_parameters(part: Content) -> Iterator[Content]:
    """A layer without the factors and offsets that it has by default."""
    if isinstance(part, dict):
        for name in sorted(_optional(part.get("type", "")) & {"affine", "elementwise_affine"}):
            yield {**part, name: False}


@lru_cache(maxsize=256)
def _optional(name: str) -> frozenset[str]:
    """The keys of a class's fields that have a default, those aside whose order alone decides."""
    if name == "Topology":
        return frozenset({"training", "frozen", "ties", "seed", "device"})
    known: Any = {**layer_classes(), **op_classes()}.get(name, getattr(model, name, None))
    if known is None:
        return frozenset()
    return frozenset(model.key(f) for f in fields(known) if f.default is not MISSING)


def _plain(part: Content) -> Iterator[Content]:
    """An axis less in the shape of an input; a loss by ``sum``."""
    if isinstance(part, dict) and part.get("type") == "Input":
        for i in range(len(part["shape"])):
            yield {**part, "shape": [*part["shape"][:i], *part["shape"][i + 1 :]]}
    if isinstance(part, dict) and part.get("type") == "Apply" and part["op"] != {"type": "Sum"}:
        yield {**part, "op": {"type": "Sum"}, "args": part["args"][:1]}


def _smaller_number(part: Content) -> Iterator[Content]:
    if isinstance(part, int) and not isinstance(part, bool):
        yield from (small for small in (0, 1, 2) if small < part)


def _numbers(part: Content) -> Iterator[int]:
    """The numbers that say how large something is: in shapes and in the settings of layers."""
    if isinstance(part, dict):
        for key, item in part.items():
            yield from _numbers(item) if key not in NO_SIZES else ()
    elif isinstance(part, list):
        for item in part:
            yield from _numbers(item)
    elif isinstance(part, int) and not isinstance(part, bool):
        yield part


def _replaced(part: Content, large: int, small: int) -> Content:
    if isinstance(part, dict):
        return {key: item if key in NO_SIZES else _replaced(item, large, small) for key, item in part.items()}
    if isinstance(part, list):
        return [_replaced(item, large, small) for item in part]
    return small if part == large and type(part) is int else part


def _passed_by(content: Content) -> Iterator[Content]:
    """A statement less: what it gives a name is one of its arguments."""
    yield from ({**content, "main": main} for main, _ in _shortened(content["main"], None))

    def inside(part: Content) -> Iterator[Content]:
        if isinstance(part, dict) and part.get("type") == "Composite":
            for body, gives in _shortened(part["body"], part["gives"]):
                yield {**part, "body": body, "gives": gives}

    yield from edited(content, inside)


def _shortened(body: list[Content], gives: Content) -> Iterator[tuple[list[Content], Content]]:
    for i, statement in enumerate(body):
        for ref in _refs(statement.get("args", [])):
            rest = [*body[:i], *body[i + 1 :]]
            for depth in {0, 1}:
                yield tuple(_renamed(part, statement.get("out"), ref, depth) for part in (rest, gives))


def _refs(part: Content) -> Iterator[Content]:
    if isinstance(part, dict) and part.get("type") == "Ref":
        yield part
    elif isinstance(part, (dict, list)):
        for item in part.values() if isinstance(part, dict) else part:
            yield from _refs(item)


def _renamed(part: Content, name: str, ref: Content, depth: int) -> Content:
    """References to ``name`` turned into ``ref``, with what they say of the place in it but for ``depth`` levels."""
    if isinstance(part, dict):
        if part.get("type") == "Ref" and part["name"] == name:
            path = [*ref.get("path", []), *part.get("path", [])[depth:]]
            return {"type": "Ref", "name": ref["name"], **({"path": path} if path else {})}
        return {key: _renamed(item, name, ref, depth) for key, item in part.items()}
    return [_renamed(item, name, ref, depth) for item in part] if isinstance(part, list) else part


def _without_argument(content: Content) -> Iterator[Content]:
    """The root with an argument less, in its signature and in its calls."""
    module = content["module"]
    takes = module.get("takes", []) if module["type"] == "Composite" else []
    for i in range(len(takes)):
        main = [
            {**s, "args": [*s["args"][:i], *s["args"][i + 1 :]]} if s["type"] == "Call" and not s["target"] else s
            for s in content["main"]
        ]
        yield {**content, "module": {**module, "takes": [*takes[:i], *takes[i + 1 :]]}, "main": main}


def _without_keyword(content: Content) -> Iterator[Content]:
    """A root that is a layer with a keyword argument less, in the layer and in its calls."""
    module = content["module"]
    for name in sorted(_optional(module["type"]) & module.keys()):
        main = [
            {**s, "kwargs": [pair for pair in s["kwargs"] if pair[0] != name]} if "kwargs" in s else s
            for s in content["main"]
        ]
        if main != content["main"]:
            layer = {key: item for key, item in module.items() if key != name}
            yield {**content, "module": layer, "main": main}
