"""Which lines of the corpus have each class of tensors in each context, each context in each, each feature of networks
in each context, and each choice of larger graphs? Those of a covering array: any two meet.

Run ``python conformance/covering.py`` to add what a class or a context that is new needs, and then
``conformance/draw_beside.py``; the lines that are there count. The array is made by allpairspy. What a line need not
choose it is without, so that few choices share the blame for what it shows, and little is compiled, which is slow.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from typing import Any

from draw_corpus import FOLDER, drawn_from, rank
from hypothesis import strategies as st

from hookcheck.networks.features import run_features
from hookcheck.oracle.expected import Expected
from hookcheck.topology.contexts import ASKING, CALL, CALLER, COMPILING, CONTEXTS, RUN, STEPS
from hookcheck.topology.corpus import beside, read, write
from hookcheck.topology.families import FAMILIES, compiled, context, tensor_class
from hookcheck.topology.families.drawing import Draw, linears, output_shape
from hookcheck.topology.families.grammar import Value
from hookcheck.topology.families.networks import Network
from hookcheck.topology.families.tensors_in_contexts import GIVEN, PLACES, READ, TRACING, place_in, refused, refuses
from hookcheck.topology.layers.activation import Tanh
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import (
    Backward,
    Call,
    Composite,
    Input,
    Statement,
    Topology,
    Within,
    inside,
    nesting,
    tensor_words,
    walk,
)
from hookcheck.topology.primitive import Layer
from hookcheck.topology.tensors import SPARSE_GRADIENT, TENSORS
from hookcheck.topology.tree import Ref
from hookcheck.topology.values import values

CANDIDATES = 200
"""Of how many networks with a class the simplest is chosen."""

FEW = 20
"""Of how many small networks in two contexts."""

SMALL = Topology(
    Composite(
        (("m0", Linear(3, 2)), ("m1", Tanh())),
        ("x",),
        (Call("h0", "m0", (Ref("x"),)), Call("h1", "m1", (Ref("h0"),))),
        Ref("h1"),
    ),
    (Input("x", (2, 3), True), Input("v", (2, 2))),
    (Call("y", "", (Ref("x"),)), Backward((Ref("y"),), (Ref("v"),))),
)
"""The network in which contexts are around those that compile."""

WAYS = {compiled.BACKWARD: ("backward", ""), compiled.APART: ("all but a part", "compile_eager")}
"""What is compiled, and by which call, for the contexts that are no such call."""

OUTER = (
    context.OFFERED[RUN],
    (*context.OFFERED[CALL], *context.OFFERED[ASKING], *context.OFFERED[STEPS]),
    context.OFFERED[CALLER],
)
"""The contexts that are around those, of which one each at once."""

SIMPLEST = 5
"""How many networks with a feature are tried in each context."""

MEETING = {
    place: tuple(name for name in names if name not in (*context.TRANSFORMING, "vjp"))
    for place, names in context.OFFERED.items()
    if place != STEPS
}
"""The contexts that features are in: transforms lack steps."""

Row = tuple[str, ...]
"""A word for tensors, where such a tensor is, and a context of each column or an empty name."""

BOTH = -1
"""What stands for the number of a column where a choice is one of a word and of a place."""

Choice = tuple[int, str]
"""One of a row, with the number of its column."""

Pair = tuple[Choice, Choice]
"""Two choices of a row."""


@dataclass(frozen=True)
class Array:
    """What there is to choose in a family: words of ``tensors``, contexts by ``columns``, those first that it is best
    to be without; ``put`` puts a network into those contexts, or gives None where it cannot be. Where ``both`` count, a
    context must meet each class that no layer takes as a parameter. A context counts as what it is ``taken_for``."""

    tensors: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    put: Callable[[Topology, Row], Topology | None]
    both: bool = False
    taken_for: Callable[[str], str] = str


def in_contexts(topology: Topology, names: Row) -> Topology | None:
    """The network in those contexts, as the family ``context`` has it."""
    chosen = {place: (name,) for place, name in zip((RUN, ASKING, CALL, CALLER), names) if name}
    fit = all(context.takes(topology, name) for name in names if name) and not context.apart(chosen)
    return context.in_contexts(topology, chosen) if fit else None


def in_way(topology: Topology, names: Row) -> Topology | None:
    """The network compiled so, as the family ``compiled`` has it; what both compile, forward and backward, is slow."""
    backward, part, call = names
    if (part and not call) or (backward and call in TRACING):
        return None
    where = "all but a part" if part else "all" if call else "backward"
    result = compiled.in_way(topology, where, call, bool(backward))
    return None if any(refused(result, name) for name in inside(result)) else result


ARRAYS: Mapping[str, Array] = {
    "context": Array(
        (*TENSORS, SPARSE_GRADIENT),
        tuple(("", *context.OFFERED[place]) for place in (RUN, ASKING, CALL, CALLER)),
        in_contexts,
        both=True,
    ),
    "compiled": Array(
        (*(name for name, each in TENSORS.items() if each.flat), SPARSE_GRADIENT),
        (("", compiled.BACKWARD), ("", compiled.APART), ("", *compiled.CALLS)),
        in_way,
        taken_for=compiled.by_either_backend,
    ),
}


@st.composite
def of_word(draw: Draw, word: str, flat: bool) -> Topology:
    """A network with such a tensor, as ``flat`` as those that are compiled or of as many dimensions as it may have."""
    if word == SPARSE_GRADIENT:
        return tensor_class.embedded(draw)
    return tensor_class.of_class(draw, word, TENSORS[word].flat if flat else TENSORS[word].ranks)


@cache
def candidates(word: str, flat: bool) -> tuple[Topology, ...]:
    """Networks with such a tensor, the simplest first."""
    return tuple(sorted(drawn_from(of_word(word, flat), CANDIDATES), key=rank))


def network(family: str, row: Row) -> Topology | None:
    """The simplest network that makes those choices."""
    word, place, *names = row
    each = (topology for topology in candidates(word, family == "compiled") if place_in(topology) == place)
    those = (ARRAYS[family].put(topology, tuple(names)) for topology in each)
    return next((topology for topology in those if topology), None)


@cache
def fits(family: str, row: Row) -> bool:
    """Whether there is such a network; what is not chosen yet is chosen last."""
    if len(row) == 1:
        return True
    word, place, *names = row
    missing = 2 + len(ARRAYS[family].columns) - len(row)
    return not any(refuses(name, word, place) for name in names) and (missing > 0 or network(family, row) is not None)


def pairs(family: str, row: Row) -> Iterator[Pair]:
    """The word of a row with its place, and any context with its word, with its place, or with what both are."""
    word, place, *names = enumerate(row)
    contexts = [(column, ARRAYS[family].taken_for(name)) for column, name in names if name]
    return iter([(word, place), *product(choices(family, row), contexts)])


def choices(family: str, row: Row) -> tuple[Choice, ...]:
    """What each context must meet of a row: its word and its place, and both of parameters that no layer takes, if the
    family is not too slow for that."""
    word, place, *_ = row
    return ((0, word), (1, place), *[(BOTH, f"{word}, {place}")] * (place == READ and ARRAYS[family].both))


def put(row: Row, column: int, choice: str) -> Row:
    """The row with that choice in a column."""
    return (*row[:column], choice, *row[column + 1 :])


def rows_of(family: str, topology: Topology) -> Iterator[Row]:
    """The rows that a line of the corpus makes: several where it has several words or contexts of a column."""
    contexts = {*inside(topology)}
    columns = ([name for name in column if name in contexts] or [""] for column in ARRAYS[family].columns)
    return product(tensor_words(topology), (place_in(topology),), *columns)


def simplified(family: str, rows: Iterable[Row], known: Iterable[Row]) -> list[Row]:
    """Rows that cover the same pairs beside those that are ``known``, without the contexts that others cover, and with
    tensors that are given wherever others cover the place."""
    result = [*rows]
    counts = Counter(pair for row in (*result, *known) for pair in pairs(family, row))
    for column in (*range(2, 2 + len(ARRAYS[family].columns)), 1):
        for at, row in enumerate(result):
            simpler = put(row, column, GIVEN if column == 1 else "")
            before, after = {*pairs(family, row)}, {*pairs(family, simpler)}
            lost, gained = before - after, after - before
            if lost and all(counts[pair] > 1 for pair in lost) and (not any(simpler[2:]) or fits(family, simpler)):
                counts.subtract(lost)
                counts.update(gained)
                result[at] = simpler
    return [row for row in dict.fromkeys(result) if any(row[2:])]


def missing(family: str, known: Iterable[Row]) -> list[Row]:
    """The rows of a covering array that are not known yet; what the library leaves open comes at the end."""
    from allpairspy import AllPairs

    array, known = ARRAYS[family], [*known]

    def may_be(row: list[Any]) -> bool:
        return fits(family, tuple(row))

    every = [[*array.tensors], [*PLACES], *map(list, array.columns)]
    tested = [[*row] for row in known if fits(family, row)]
    rows = simplified(family, map(tuple, AllPairs(every, filter_func=may_be, previously_tested=tested)), known)
    covered = {pair for row in (*rows, *known) for pair in pairs(family, row)}
    left = {pair: row for pair, row in possible(family).items() if pair not in covered}
    return simplified(family, packed(family, rows, left), known)


def possible(family: str) -> dict[Pair, Row]:
    """Each word with each place, and both with each context that goes with it, and a row that has little else."""
    array = ARRAYS[family]
    names = ((2 + column, name) for column, names in enumerate(array.columns) for name in names if name)
    result: dict[Pair, Row] = {}
    for word, place, (column, name) in product(array.tensors, PLACES, names):
        alone = put((word, place, *("" for _ in array.columns)), column, name)
        fuller = (put(alone, other, n) for other, ns in enumerate(array.columns, 2) if other != column for n in ns)
        row = next((row for row in (alone, *fuller) if fits(family, row)), None)
        for pair in pairs(family, alone) if row else ():
            result.setdefault(pair, row)
    return result


def packed(family: str, rows: Iterable[Row], left: Mapping[Pair, Row]) -> list[Row]:
    """The rows and all pairs that are ``left``: each goes into the first row that it fits into, or has one of its
    own."""
    result = [*rows]
    for (choice, (column, name)), alone in left.items():
        for at, row in enumerate(result):
            fuller = put(row, column, name)
            if choice in choices(family, row) and not row[column] and fits(family, fuller):
                result[at] = fuller
                break
        else:
            result.append(alone)
    return result


@st.composite
def of_pair(draw: Draw, chosen: context.Chosen) -> Topology:
    """A small network in those contexts."""
    module, shape = draw(linears(3)), (2, 3)
    y = Value(Ref("y"), output_shape(module, shape))
    return context.placed(draw, Network(module, (Input("x", shape, True),), (y,)), chosen)


def nested(known: Iterable[Topology]) -> Iterator[Topology]:
    """For each two contexts of one place that do not nest in a line that is ``known``: the simplest network in which
    they do."""
    done = {frozenset(pair) for topology in known for pair in nesting(topology)}
    for place, names in context.OFFERED.items():
        for pair in product(names, names):
            if frozenset(pair) not in done and not context.apart({place: pair}):
                done.add(frozenset(pair))
                yield min(drawn_from(of_pair({place: pair}), FEW), key=rank)


def within(row: Row) -> Topology | None:
    """The small network, in the context of a row that compiles, within the others of it; None where it cannot be."""
    name, *others = row
    where, call = WAYS.get(name, ("all", name))
    compiling = compiled.in_way(SMALL, where, call, name == compiled.BACKWARD)
    outer = {CONTEXTS[other].wraps: (other,) for other in others if other}
    return compiled.within(compiling, outer) if compiled.takes(compiling, outer) else None


def around_compiled(known: Iterable[Topology]) -> Iterator[Topology]:
    """Networks in which each context that compiles, by one backend or another, is within each other one that may be
    around it, those aside that meet in a line that is ``known``; several are around it at once, since compiling is
    slow."""
    met = {compiled.pair(*names) for topology in known for names in combinations(inside(topology), 2)}
    left = [*COMPILING]
    while left:
        for name in [*left]:
            row: Row = (name,)
            for names in OUTER:
                new = (other for other in names if compiled.pair(name, other) not in met and within((*row, other)))
                row = (*row, next(new, ""))
            topology = within(row) if any(row[1:]) else None
            if topology:
                met |= {compiled.pair(name, other) for other in row[1:]}
                yield topology
            else:
                left.remove(name)


def graphs(known: Iterable[Topology]) -> Iterator[Topology]:
    """For each choice of larger graphs that no line that is ``known`` makes: the simplest network that makes it."""
    choices_of_lines = {*map(chosen, known)}
    for graph in compiled.GRAPHS:
        topology = min(drawn_from(compiled.of_graph(graph), FEW), key=rank)
        if chosen(topology) not in choices_of_lines:
            yield topology


def chosen(topology: Topology) -> tuple[object, ...]:
    """What a `compiled.Graph` chooses: contexts, what is in a body, how many layers there are, whether the input
    learns, and what the losses come from."""
    modules = [module for _, module in walk(topology.module)]
    in_bodies = {inner for module in modules if isinstance(module, Composite) for inner in map(context_of, module.body)}
    layers = sum(isinstance(module, Layer) for module in modules)
    cotangents = {i.name for i in topology.inputs[1:]}
    contexts = frozenset(inside(topology)), nesting(topology), frozenset(in_bodies)
    return (*contexts, layers, topology.inputs[0].requires_grad, frozenset(cotangents))


def context_of(statement: Statement) -> str:
    """The context that a statement makes, or an empty name."""
    return statement.mode if isinstance(statement, Within) else getattr(statement, "through", "")


FEATURES = ("mode", "inputs", "outputs", "reached", "met", "writes", "stale", "unused", "asks", "roots", "leaves")
"""What the contract tells networks apart by, their layers and tensors left out (see `run_features`)."""


@cache
def features(topology: Topology) -> frozenset[tuple[str, str]]:
    """Each of those with each word that the network has for it."""
    all_words = run_features(Expected(topology, values(topology)))
    return frozenset((feature, word) for feature in FEATURES for word in all_words.get(feature, ()))


def plain(topology: Topology) -> bool:
    """Whether it is called once, with positional arguments and outside of contexts, and then goes backward."""
    first, *rest = topology.main
    called_once = isinstance(first, Call) and not first.kwargs and not any(isinstance(each, Call) for each in rest)
    return called_once and isinstance(rest[-1], Backward) and not inside(topology) and not tensor_words(topology)


def featured(known: Iterable[Topology]) -> Iterator[Topology]:
    """For each feature that no line that is ``known`` has in a context: the simplest network of any family that has it,
    in as many of those contexts at once as it may be in."""
    met = {(word, name) for topology in known for word in features(topology) for name in inside(topology)}
    simple = sorted((t for family in FAMILIES for t in read(FOLDER, family) if plain(t)), key=rank)
    for word in sorted({word for topology in simple for word in features(topology)}):
        for topology in [t for t in simple if word in features(t)][:SIMPLEST]:
            while True:
                chosen: dict[str, tuple[str, ...]] = {}
                for place, names in MEETING.items():
                    new = (n for n in names if (word, n) not in met and context.takes(topology, n))
                    chosen |= next(({place: (n,)} for n in new if not context.apart({**chosen, place: (n,)})), {})
                result = context.in_contexts(topology, chosen)
                met |= {(each, name) for each in features(result) for name in inside(result)}
                if not chosen or word not in features(result):
                    break
                yield result


def main() -> None:
    """Adds the lines that are missing to the files of both families."""
    for family in ARRAYS:
        lines = read(FOLDER, family)
        rows = missing(family, [row for topology in lines for row in rows_of(family, topology)])
        new = [topology for row in rows for topology in [network(family, row)] if topology]
        for others in {"context": (nested, featured), "compiled": (around_compiled, graphs)}[family]:
            new += others((*lines, *new))
        write(FOLDER, family, [*lines, *new], beside(FOLDER, family))
        print(f"{family}: {len(lines) + len(new)} topologies, {len(new)} of them new", flush=True)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
