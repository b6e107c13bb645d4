"""How is a module called, and what is asked of what it gives? The last step of families that are about either.

A module is written by a `Writer`, takes `Argument`s that may hold anything, and gives any `Tree`. `finished` makes a
topology of it: called by main, or by an outer module that goes on with one of its outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import DTYPES, SEEDS, Draw, losses
from hookcheck.topology.families.grammar import Value, Writer
from hookcheck.topology.model import Call, Composite, Input, Topology
from hookcheck.topology.primitive import Shape
from hookcheck.topology.tree import Pack, Ref, Tree

Known = Mapping[Ref, Shape]


@dataclass(frozen=True)
class Argument:
    """What a caller passes to the parameter ``name``: by position, or by ``keyword``, or because it must (``only``).

    The tensors in ``value`` are inputs of the topology, by name.
    """

    name: str
    value: Tree
    keyword: bool = False
    only: bool = False


def shapes_of(values: list[Value]) -> Known:
    """Values as `inside` looks them up."""
    return {value.ref: value.shape for value in values}


def inside(tree: Tree, known: Known, owner: Ref) -> Iterator[Value]:
    """Where the ``known`` tensors of ``tree`` lie in a variable ``owner`` that holds it."""
    if isinstance(tree, Pack):
        for part, item in zip(_parts(tree), tree.items):
            yield from inside(item, known, Ref(owner.name, (*owner.path, part)))
    elif isinstance(tree, Ref):
        depth = len(tree.path)
        for ref, shape in known.items():
            if ref.name == tree.name and ref.path[:depth] == tree.path:
                yield Value(Ref(owner.name, (*owner.path, *ref.path[depth:])), shape)


def _parts(pack: Pack) -> tuple[int | str, ...]:
    """How each item of a container is reached."""
    if pack.kind in ("namedtuple", "dataclass"):
        return tuple(f".{key}" for key in pack.keys)
    return pack.keys if pack.kind == "dict" else tuple(range(len(pack.items)))


def taking(draw: Draw, arguments: tuple[Argument, ...], inputs: tuple[Input, ...]) -> Writer:
    """The writer of a module that takes these arguments; its first values are the inputs, in their order."""
    writer = Writer(draw)
    writer.inputs = tuple(
        value for i in inputs for a in arguments for value in inside(a.value, {Ref(i.name): i.shape}, Ref(a.name))
    )
    return writer


def signed(writer: Writer, gives: Tree, arguments: tuple[Argument, ...]) -> Composite:
    """The module as written, with the signature that the arguments ask for; what its steps need comes before those that
    are passed by keyword."""
    positional, keyword = ([a.name for a in arguments if a.keyword is flag] for flag in (False, True))
    takes = (*positional, *(name for name, _ in writer.needs), *keyword)
    return replace(writer.module(gives), takes=takes, keywords=tuple(a.name for a in arguments if a.only))


def called(out: str, target: str, arguments: tuple[Argument, ...], needed: tuple[Ref, ...]) -> Call:
    """The call that passes the arguments, and what the steps of the module need."""
    positional = tuple(a.value for a in arguments if not a.keyword)
    return Call(out, target, (*positional, *needed), tuple((a.name, a.value) for a in arguments if a.keyword))


def finished(
    draw: Draw,
    writer: Writer,
    gives: Tree,
    live: list[Value],
    inputs: tuple[Input, ...],
    arguments: tuple[Argument, ...] = (),
) -> Topology:
    """A run of what ``writer`` has written, and a backward from one or all of the outputs that are ``live``, which
    require grad; by default the inputs are passed as they are."""
    arguments = arguments or plain(inputs)
    module = signed(writer, gives, arguments)
    outputs = list(inside(gives, shapes_of(live), Ref("y")))
    if draw(st.booleans()):
        outer = taking(draw, plain(inputs), inputs)
        needed = tuple(outer.need(operand) for _, operand in writer.needs)
        outer.statements.append(called("y", outer.child(module), arguments, needed))
        gives = Ref("y")
        if draw(st.booleans()):
            outputs = [outer.chain(draw(st.sampled_from(outputs)), 1, 1)]
            gives = outputs[0].ref
        writer, arguments, module = outer, plain(inputs), signed(outer, gives, plain(inputs))
        outputs = list(inside(gives, shapes_of(outputs), Ref("y")))
    every, one = draw(st.booleans()), draw(st.sampled_from(outputs))
    chosen = outputs if every else [one]
    cotangents, backward = draw(losses(tuple((f"y{i}", v.ref, v.shape) for i, v in enumerate(chosen))))
    further = tuple(Input(name, o.shape, False, o.domain, o.below) for name, o in writer.needs)
    return Topology(
        module,
        (*inputs, *further, *cotangents),
        (called("y", "", arguments, tuple(Ref(i.name) for i in further)), *backward),
        training=draw(st.sampled_from([True, True, False])),
        dtype=draw(DTYPES),
        seed=draw(SEEDS),
    )


def plain(inputs: tuple[Input, ...]) -> tuple[Argument, ...]:
    """The inputs as positional arguments of their own names."""
    return tuple(Argument(i.name, Ref(i.name)) for i in inputs)
