"""What a topology has about it: conditions that tests ask families for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hookcheck.topology.families import (
    multi_output,
)
from hookcheck.topology.model import (
    Apply,
    Backward,
    Call,
    Composite,
    Topology,
    Within,
    statements,
    walk,
)
from hookcheck.topology.ops.views import Detach
from hookcheck.topology.primitive import Layer, Op, Primitive
from hookcheck.topology.tree import Literal, Pack, Ref, Tree

Condition = Callable[[Topology], bool]


def steps(topology: Topology) -> Iterator[Layer | Op]:
    """Every layer and every operation."""
    yield from (module for _, module in walk(topology.module) if isinstance(module, Layer))
    yield from (statement.op for statement in statements(topology) if isinstance(statement, Apply))


def named(*names: str) -> Condition:
    return lambda t: any(type(step).__name__ in names for step in steps(t))


def given_back(topology: Topology, inner: bool | None = None) -> Iterator[Tree]:
    """What our own modules give: all, or only the root (``inner`` False) or those inside it."""
    for path, module in walk(topology.module):
        if isinstance(module, Composite) and inner in (None, bool(path)):
            yield module.gives


def packs(tree: Tree) -> Iterator[Pack]:
    if isinstance(tree, Pack):
        yield tree
        for item in tree.items:
            yield from packs(item)


def results(topology: Topology) -> Iterator[tuple[Tree, ...]]:
    """The outputs of those modules of our own that give several."""
    return (tree.items for tree in given_back(topology) if isinstance(tree, Pack))


def calls(topology: Topology) -> Iterator[Call]:
    return (statement for statement in statements(topology) if isinstance(statement, Call))


def composite_calls(topology: Topology) -> Iterator[Call]:
    """The calls of modules of our own, where torch's layers have no part in how arguments are passed."""
    kinds = dict(walk(topology.module))
    for path, module in kinds.items():
        if isinstance(module, Composite):
            for s in module.body:
                if isinstance(s, Call) and isinstance(kinds[f"{path}.{s.target}" if path else s.target], Composite):
                    yield s
    if isinstance(topology.module, Composite):
        yield from (s for s in topology.main if isinstance(s, Call))


def passed(topology: Topology) -> Iterator[Tree]:
    for call in composite_calls(topology):
        yield from (*call.args, *(tree for _, tree in call.kwargs))


def lost(topology: Topology) -> tuple[Ref, ...]:
    """What the loss is on: roots of backward, or what their products are of."""
    operands = {s.out: s.args[0] for s in topology.main if isinstance(s, Apply)}

    def origin(ref: Ref) -> Ref:
        return origin(operands[ref.name]) if ref.name in operands else ref

    return tuple(origin(ref) for s in topology.main if isinstance(s, Backward) for ref in s.outputs)


def one_step_with_several_outputs(topology: Topology) -> bool:
    return named(*(name for names in multi_output.SEVERAL.values() for name in names))(topology)


def gives_several(topology: Topology) -> bool:
    return any(len(items) > 1 for items in results(topology)) or one_step_with_several_outputs(topology)


def gives_a_container(topology: Topology) -> bool:
    """Not merely a tuple of tensors."""
    trees = [tree for tree in given_back(topology) if isinstance(tree, Pack)]
    return any(tree.kind != "tuple" or any(isinstance(item, Pack) for item in tree.items) for tree in trees)


def takes_a_container(topology: Topology) -> bool:
    return any(isinstance(tree, Pack) for tree in passed(topology))


def takes_a_literal(topology: Topology) -> bool:
    return any(isinstance(tree, Literal) for tree in passed(topology))


def takes_a_keyword(topology: Topology) -> bool:
    return any(isinstance(tree, Ref) for call in calls(topology) for _, tree in call.kwargs)


def makes_a_view(topology: Topology) -> bool:
    return any(getattr(step, "views", False) for step in steps(topology))


def cuts(topology: Topology) -> bool:
    return any(
        isinstance(s, Within) or (isinstance(s, Apply) and isinstance(s.op, Detach)) for s in statements(topology)
    )


def writes(topology: Topology) -> bool:
    return any(isinstance(step, Primitive) and step.writes for step in steps(topology))
