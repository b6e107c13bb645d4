"""Which lines of the corpus have each form of network with each class of tensors, and in each context?

Run ``python conformance/forms.py`` to add what a form, a class or a context that is new needs, and then
``conformance/draw_beside.py``; the lines that are there count. A form is what a network does beside what its family is
about: it takes several arguments, gives several values, writes in place, shares a part. Of all networks with one form
or two those are added that show most pairs for their size, so that few choices share the blame for what one shows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product

from draw_corpus import FOLDER, adding

from hookcheck.topology.contexts import ASKING, CALL, CALLER, RUN, STEPS
from hookcheck.topology.corpus import beside, read, write
from hookcheck.topology.families import compiled, context
from hookcheck.topology.families.grammar import Value
from hookcheck.topology.families.networks import Network
from hookcheck.topology.families.tensors_in_contexts import GIVEN, MADE
from hookcheck.topology.layers.activation import Sigmoid, Tanh
from hookcheck.topology.layers.convolution import Conv2d, Conv3d
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import (
    Apply,
    Backward,
    Call,
    Composite,
    Input,
    Module,
    Recurse,
    Statement,
    Topology,
    Within,
    inside,
)
from hookcheck.topology.needs import needs
from hookcheck.topology.ops import Add, Mul
from hookcheck.topology.ops.elementwise import Neg, Scale
from hookcheck.topology.ops.inplace import ReLUInplace, ScaleInplace
from hookcheck.topology.ops.tensors import AsDense, AsTensor
from hookcheck.topology.primitive import Layer, Shape
from hookcheck.topology.tensors import TENSORS
from hookcheck.topology.tree import Literal, Pack, Ref, Tree

Pair = tuple[str, str]
"""A class of tensors or a context, with a form."""

ARGUMENTS, RESULTS, APART, WRITE, AGAIN = "two arguments", "two outputs", "no_grad", "in place", "twice"
NONE = "a gradient is None"
SHARED, TIED, RECURSIVE, KEYWORD = "shared module", "shared parameter", "recursive", "keyword-only"
TO_INPUT, TO_OUTPUT, BRAIN, HALF = "input is overwritten", "output is overwritten", "bfloat16", "float16"

FORBIDDEN = (TO_INPUT, TO_OUTPUT)
"""The forms at which full hooks raise, so that nothing else is seen of a network."""

OUTPUT = "output"
"""The place of a tensor of a class that a module makes and gives back."""

LAYOUTS = ("channels last", "channels last, 3-D", "large strides")
"""The classes that are each form's in that place too."""

SQUARE: Shape = (2, 3)
"""Where nothing else is asked for, the shape of all tensors."""

OF_RANK: Mapping[int, tuple[Layer, Shape]] = {
    0: (Tanh(), ()),
    2: (Linear(3, 3), SQUARE),
    4: (Conv2d(2, 2, (1, 1)), (2, 2, 3, 2)),
    5: (Conv3d(2, 2, (1, 1, 1)), (2, 2, 2, 3, 2)),
}
"""A layer that keeps the shape of what it is given, by its number of dimensions."""


@dataclass(frozen=True)
class FormsOfFamily:
    """The forms of a family, how many at once, those that are alone, and its networks with some of them: each with the
    words that are to meet them."""

    forms: tuple[str, ...]
    networks: Callable[[frozenset[str]], Iterator[tuple[tuple[str, ...], Topology]]]
    alone: tuple[str, ...] = ()


class Body:
    """The statements of a body, written one after the other."""

    def __init__(self) -> None:
        """None yet."""
        self.statements: list[Statement] = []

    def apply(self, op: object, *args: Ref) -> Ref:
        """The result of an operation."""
        return self.add(Apply(f"h{len(self.statements)}", op, args))  # type: ignore[arg-type]

    def call(self, target: str, *args: Tree, **kwargs: Tree) -> Ref:
        """The result of a child."""
        return self.add(Call(f"h{len(self.statements)}", target, args, tuple(kwargs.items())))

    def add(self, statement: Apply | Call | Recurse) -> Ref:
        """The result of that statement."""
        self.statements.append(statement)
        return Ref(statement.out)


def of_class(word: str, place: str, forms: frozenset[str]) -> Topology:
    """A network of which a part is given a tensor of that class, or makes it and gives it back."""
    chosen = TENSORS[word]
    rank = next(rank for rank in OF_RANK if rank in chosen.ranks)
    layer, shape = OF_RANK[rank]
    names = ("x0", "x1") if ARGUMENTS in forms else ("x0",)
    refs = tuple(map(Ref, names))
    constant = chosen.constant and place == GIVEN
    net = Body()
    given = [net.apply(AsTensor(word), ref) if place == MADE else ref for ref in refs]

    def result(args: Iterable[Ref]) -> Ref:
        out = net.call("part", *args)
        first = Ref(out.name, (0,)) if RESULTS in forms else out
        if place == OUTPUT and chosen.read:
            first = net.apply(AsDense(word), first)
        return net.apply(Add(), first, Ref(out.name, (1,))) if RESULTS in forms else first

    y = result(given)
    if AGAIN in forms:
        y = net.apply(Add(), y, result(given[::-1]))
    children: tuple[tuple[str, Module], ...] = (("part", part(word, place, forms, layer, names)),)
    if chosen.constant and place == OUTPUT:  # of which alone there is no gradient
        y, children = net.call("last", y), (*children, ("last", layer))
    return Topology(
        Composite(children, names, tuple(net.statements), y),
        (*(Input(n, shape, not constant, tensor=word if place == GIVEN else "") for n in names), Input("v", shape)),
        (Call("y", "", refs), Backward((Ref("y"),), (Ref("v"),))),
        dtype=chosen.dtype or "float64",
    )


def part(word: str, place: str, forms: frozenset[str], layer: Layer, names: tuple[str, ...]) -> Composite:
    """The part: a layer, and what each of the forms adds."""
    chosen, body = TENSORS[word], Body()
    children: list[tuple[str, Module]] = [("layer", layer)]
    read = chosen.opaque and place != OUTPUT
    args = [body.apply(AsDense(word), Ref(name)) if read else Ref(name) for name in names]
    h = body.call("layer", args[0])
    if ARGUMENTS in forms:
        h = body.apply(Mul(), h, args[1])
    if APART in forms:
        children.append(("apart", Sigmoid()))
        before = len(body.statements)
        factor = body.call("apart", args[0])
        if place == OUTPUT:
            factor = body.apply(AsTensor(word), factor)
        body.statements[before:] = [Within("no_grad", tuple(body.statements[before:]))]
        if place == OUTPUT and chosen.read:
            factor = body.apply(AsDense(word), factor)
        h = body.apply(Mul(), h, factor)
    other = body.apply(Neg(), h) if RESULTS in forms else h
    if place == OUTPUT:
        h = body.apply(AsTensor(word), h)
    if WRITE in forms:
        h = body.apply(ScaleInplace(2.0), h if place == OUTPUT else body.apply(Scale(3.0), h))
    gives = Pack("tuple", (h, other)) if RESULTS in forms else h
    return Composite(tuple(children), names, tuple(body.statements), gives)


def with_classes(forms: frozenset[str]) -> Iterator[tuple[tuple[str, ...], Topology]]:
    """Those of each class, in each place that it may have. A wrapper knows no writes in place, and what is read first
    has no other class to write to."""
    for word, each in TENSORS.items():
        for place in (GIVEN,) if each.leaf else (GIVEN, MADE, OUTPUT):
            lost = (bool(each.read) if place == OUTPUT else word == "wrapper") and WRITE in forms
            if not lost:
                words = (word, f"{word}, {place}") if word in LAYOUTS and place == OUTPUT else (word,)
                yield (*words, place), of_class(word, place, forms)


def formed(forms: frozenset[str]) -> tuple[Network, tuple[tuple[str, str], ...]]:
    """A network of those forms, and the parameters that it shares."""
    body = Body()
    children: dict[str, Module] = {"m": Linear(3, 3)}
    h = body.call("m", Ref("x"))
    if SHARED in forms:
        h = body.call("m", body.apply(Neg(), h))
    if TIED in forms:
        children["n"] = Linear(3, 3)
        h = body.call("n", h)
    if RECURSIVE in forms:
        # Calls give other numbers, by which their gradients are told apart where a hook that acts on them has no say.
        steps = (Call("h", "m", (Ref("x"),)), Recurse("r", Ref("h"), "depth"), Apply("z", Neg(), (Ref("r"),)))
        children["r"] = Composite((("m", Linear(3, 3)),), ("x", "depth"), steps, Ref("z"))
        h = body.call("r", h, Literal(1))
    if KEYWORD in forms:
        product_of = (Call("h", "m", (Ref("a"),)), Apply("p", Mul(), (Ref("h"), Ref("b"))))
        children["k"] = Composite((("m", Linear(3, 3)),), ("a", "b"), product_of, Ref("p"), keywords=("a", "b"))
        h = body.call("k", a=h, b=Ref("x"))
    if TO_OUTPUT in forms:
        h = body.apply(ReLUInplace(), h)
    if TO_INPUT in forms:
        children["w"] = Composite((), ("x",), (Apply("z", ScaleInplace(2.0), (Ref("x"),)),), Ref("z"))
        h = body.call("w", body.apply(Scale(3.0), h))
    root = Composite(tuple(children.items()), ("x",), tuple(body.statements), h)
    ties = (("n.weight", "m.weight"),) if TIED in forms else ()
    return Network(root, (Input("x", SQUARE, True),), (Value(Ref("y"), SQUARE),)), ties


def with_contexts(forms: frozenset[str]) -> Iterator[tuple[tuple[str, ...], Topology]]:
    """Those in each choice of few contexts, of each place one at most."""
    if {BRAIN, HALF} <= forms:
        return
    net, ties = formed(forms)
    dtype = next((dtype for dtype in (BRAIN, HALF) if dtype in forms), "float64")
    for names in product(*(("", *context.OFFERED[place]) for place in PLACES)):
        chosen = {place: (name,) for place, name in zip(PLACES, names) if name}
        if not 0 < len(chosen) <= AT_ONCE or context.apart(chosen):
            continue
        behind = context.behind(net, *chosen[STEPS]) if STEPS in chosen else net
        shared = tuple((f"rest.{one}", f"rest.{other}") for one, other in ties) if STEPS in chosen else ties
        main = (net.call(), Backward((Ref("y"),), (Ref("v"),)))
        topology = Topology(behind.module, (*net.arguments, Input("v", SQUARE)), main, ties=shared)
        if all(context.takes(topology, name) for name in names if name):
            around = {place: those for place, those in chosen.items() if place != STEPS}
            result = replace(context.in_contexts(topology, around), dtype=dtype)
            if not out_of_place(result, forms):
                yield tuple(filter(None, names)), result


PLACES = (RUN, CALL, CALLER, ASKING, STEPS)

AT_ONCE = 2
"""How many contexts a network is in at most."""


def out_of_place(topology: Topology, forms: frozenset[str]) -> bool:
    """Whether one of the contexts is not for one of the forms; or the network is for 1.8, which lets writes in place
    through, and raises for another reason."""
    names = {*inside(topology)}
    early = not forms.isdisjoint(FORBIDDEN) and needs(topology)[0] in ("1.7", "1.8")
    return early or any(not (names.isdisjoint(those) or forms.isdisjoint(of)) for those, of, _ in NOT_IN)


NOT_IN: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (("autocast",), (BRAIN, HALF), "what autocast casts depends on the release, and float64 alone is left as it is"),
    (("vjp",), FORBIDDEN, "torch.func refuses full hooks, whatever is written to"),
)
"""Contexts without networks of some forms, those, and the reason."""


AROUND = {RUN: ("one_thread",)}
"""What is around all that is compiled: it is for releases then whose graphs are no calls of modules, on which hooks on
all modules would be called (seen on 2.1.2 and 2.3.1, and not on 2.6.0)."""


def with_compilers(forms: frozenset[str]) -> Iterator[tuple[tuple[str, ...], Topology]]:
    """Those in each way of compiling: an argument that does not require grad, or an output that no loss is on, has a
    gradient that is None."""
    names = ("x0", "x1") if ARGUMENTS in forms else ("x0",)
    refs, lost = tuple(map(Ref, names)), NONE in forms
    body = Body()
    h = body.call("m", refs[0])
    h = body.apply(Mul(), h, refs[1]) if ARGUMENTS in forms else body.call("n", h)
    several = RESULTS in forms
    gives: Tree = Pack("tuple", (h, body.apply(Neg(), h))) if several else h
    children = (("m", Linear(3, 3)), *([] if ARGUMENTS in forms else [("n", Tanh())]))
    inner = Composite(children, names, tuple(body.statements), gives)
    results: Tree = Pack("tuple", (Ref("p", (0,)), Ref("p", (1,)))) if several else Ref("p")
    outputs = ((Ref("y", (0,)), Ref("y", (1,)))[: 1 if lost else 2]) if several else (Ref("y"),)
    cotangents = tuple(Ref(f"v{i}") for i in range(len(outputs)))
    without = names[-1:] if lost and not several else ()
    topology = Topology(
        Composite((("part", inner),), names, (Call("p", "part", refs),), results),
        (*(Input(n, SQUARE, n not in without) for n in names), *(Input(v.name, SQUARE) for v in cotangents)),
        (Call("y", "", refs), Backward(outputs, cotangents)),
    )
    for where, call in compiled.WAYS:
        for backward in (False, True):
            way = compiled.in_way(topology, where, call, backward)
            yield tuple({compiled.by_either_backend(name): None for name in inside(way)}), compiled.within(way, AROUND)


OF_FAMILY: Mapping[str, FormsOfFamily] = {
    "tensor-class": FormsOfFamily((ARGUMENTS, RESULTS, APART, WRITE, AGAIN), with_classes),
    "context": FormsOfFamily(
        (SHARED, TIED, RECURSIVE, KEYWORD, TO_INPUT, TO_OUTPUT, BRAIN, HALF), with_contexts, FORBIDDEN
    ),
    "compiled": FormsOfFamily((ARGUMENTS, RESULTS, NONE), with_compilers),
}


def candidates(family: str) -> dict[Topology, set[Pair]]:
    """The networks of a family with one form or two, each with the pairs that it shows."""
    those = OF_FAMILY[family]
    shown: dict[Topology, set[Pair]] = {}
    for count in (1, 2):
        for forms in combinations(those.forms, count):
            if count == 1 or not {*those.alone}.intersection(forms):
                for words, topology in those.networks(frozenset(forms)):
                    shown[topology] = {*product(words, forms)}
    return shown


def missing(family: str, known: Iterable[Topology]) -> list[Topology]:
    """Those that show what none that is ``known`` does; few of them, and small ones."""
    shown = candidates(family)
    done = {pair for topology in known for pair in shown.get(topology, ())}
    return adding({topology: pairs - done for topology, pairs in shown.items()}, len(shown))


def main() -> None:
    """Adds the lines that are missing to the files of the families."""
    for family in OF_FAMILY:
        lines = read(FOLDER, family)
        new = missing(family, lines)
        write(FOLDER, family, [*lines, *new], beside(FOLDER, family))
        print(f"{family}: {len(lines) + len(new)} topologies, {len(new)} of them new", flush=True)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
