"""Do the families of wired networks draw what they promise, in all its variations?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis.strategies import SearchStrategy

from hookcheck.oracle.expected import Expected
from hookcheck.oracle.graph import CallTrace
from hookcheck.topology.families import (
    branch_and_merge,
    multi_input,
    nested,
    pass_through,
    residual,
    shared_module,
    shared_parameter,
    unused_input,
)
from hookcheck.topology.model import (
    Apply,
    Call,
    Composite,
    Module,
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Recurse,
    Sequential,
    Statement,
    Topology,
    children,
    statements,
    walk,
)
from hookcheck.topology.primitive import Layer
from hookcheck.topology.tree import Literal, Ref
from hookcheck.topology.values import values

from .running import scripted
from .sampling import drawn, reaches

FAMILIES: dict[str, Callable[[], SearchStrategy[Topology]]] = {
    "residual": residual.topologies,
    "branch-and-merge": branch_and_merge.topologies,
    "nested": nested.topologies,
    "shared-module": shared_module.topologies,
    "shared-parameter": shared_parameter.topologies,
    "multi-input": multi_input.topologies,
    "unused-input": unused_input.topologies,
    "pass-through": pass_through.topologies,
}
every = pytest.mark.parametrize("family", FAMILIES)


@cache
def calls(topology: Topology) -> tuple[CallTrace, ...]:
    return tuple(Expected(topology, values(topology)).trace.calls)


def bodies(topology: Topology) -> list[Composite]:
    return [module for _, module in walk(topology.module) if isinstance(module, Composite)]


def applied(topology: Topology) -> set[str]:
    return {type(s.op).__name__ for s in statements(topology) if isinstance(s, Apply)}


def named(statement: Statement) -> list[Ref]:
    args = statement.args if isinstance(statement, (Call, Apply)) else ()
    return [arg for arg in args if isinstance(arg, Ref)]


def uses(composite: Composite, name: str) -> int:
    """How many statements of the body read a value."""
    return sum(any(ref.name == name for ref in named(statement)) for statement in composite.body)


def held(composite: Composite) -> set[str]:
    """The parameters that the body itself refers to."""
    return {ref.name for statement in composite.body for ref in named(statement) if ref.name.startswith("self.")}


def merges(statement: Statement, ends: tuple[str, ...]) -> bool:
    return isinstance(statement, Apply) and type(statement.op).__name__ in ends and len(statement.args) > 1


def dependencies(composite: Composite, ref: Ref) -> set[str]:
    """The arguments of a module on which a value of its body depends."""
    for statement in composite.body:
        if isinstance(statement, (Call, Apply)) and statement.out == ref.name:
            return set().union(*(dependencies(composite, arg) for arg in named(statement)))
        if isinstance(statement, Recurse) and statement.out == ref.name:
            return dependencies(composite, statement.value)
    return {ref.name}


def skips(composite: Composite) -> bool:
    """Whether a sum or a concatenation has one operand made of the module's input, and another one made of it too."""
    ends = [s for s in composite.body if merges(s, ("Add", "Cat"))]
    return any(sum("x" in dependencies(composite, ref) for ref in named(end)) > 1 for end in ends)


def branches(topology: Topology) -> bool:
    """Whether a value that is read twice or more meets itself in one operation."""
    ends = ("Add", "Mul", "Maximum", "Cat", "Stack", "MatMul")
    return any(
        any(sum("x" in dependencies(body, ref) for ref in named(s)) > 1 for s in body.body if merges(s, ends))
        for body in bodies(topology)
    )


def depth(module: Module) -> int:
    return 1 + max((depth(child) for _, child in children(module)), default=0)


def called_often(topology: Topology) -> bool:
    return max(Counter((call.path, id(call.module)) for call in calls(topology)).values()) > 1


def shares_a_parameter(topology: Topology) -> bool:
    tied = any(not isinstance(dict(walk(topology.module)).get(target), Layer) for target, _ in topology.ties)
    reuse = any(uses(body, name) > 1 for body in bodies(topology) for name in held(body))
    layers = {path: module for path, module in walk(topology.module) if isinstance(module, Layer)}
    borrowed = any(name.split(".")[1] in dict(body.children) for body in bodies(topology) for name in held(body))
    return bool(layers or reuse) and (tied or reuse or borrowed)


def takes_several(topology: Topology) -> bool:
    return sum(arg is not None for arg in calls(topology)[0].args) > 1


def ignores(composite: Composite) -> bool:
    given = {name for name in composite.takes if name.startswith("x")}
    read = {name for name in given if uses(composite, name)}
    return read != given and isinstance(composite.gives, Ref) and composite.gives.name not in given - read


def passes(call: CallTrace) -> bool:
    """Whether an output holds the very numbers of an argument: no step has copied them."""
    return any(o is not None and a is not None and o.array is a.array for o in call.outputs_inside for a in call.args)


PROMISES: dict[str, Callable[[Topology], bool]] = {
    "residual": lambda t: any(map(skips, bodies(t))),
    "branch-and-merge": branches,
    "nested": lambda t: depth(t.module) > 2,
    "shared-module": called_often,
    "shared-parameter": shares_a_parameter,
    "multi-input": takes_several,
    "unused-input": lambda t: any(map(ignores, bodies(t))),
    "pass-through": lambda t: any(map(passes, calls(t))),
}


def has(*kinds: type) -> Callable[[Topology], bool]:
    return lambda t: any(isinstance(module, kinds) for _, module in walk(t.module))


def applies(name: str) -> Callable[[Topology], bool]:
    return lambda t: name in applied(t)


def losses(t: Topology) -> int:
    """How many outputs there is a loss on."""
    return sum(i.name.startswith("v_") for i in t.inputs)


def outputs(t: Topology) -> int:
    return len(calls(t)[0].outputs_inside)


def flags(t: Topology) -> list[bool]:
    return [i.requires_grad for i in t.inputs if i.name.startswith("x")]


def operands(t: Topology) -> list[list[Ref]]:
    """What sums and concatenations put together."""
    return [named(s) for body in bodies(t) for s in body.body if merges(s, ("Add", "Cat"))]


def dead(t: Topology) -> bool:
    """Whether a call's result is read by nothing."""
    return any(
        isinstance(s, Call) and not uses(body, s.out) and s.out not in str(body.gives)
        for body in bodies(t)
        for s in body.body
    )


def repeated(t: Topology) -> list[CallTrace]:
    """The calls of modules that are called several times."""
    often = Counter(call.path for call in calls(t))
    return [call for call in calls(t) if often[call.path] > 1]


def recurses(t: Topology) -> bool:
    return any(isinstance(s, Recurse) for s in statements(t))


def depth_given(t: Topology) -> bool:
    """Whether main itself says how deep the recursion is."""
    return isinstance(t.main[0], Call) and any(isinstance(arg, Literal) for arg in t.main[0].args)


def given_a_parameter(t: Topology) -> bool:
    return any(isinstance(s, Call) and any(ref.name.startswith("self.") for ref in named(s)) for s in statements(t))


def called_with_one_twice(t: Topology) -> bool:
    return any(len({id(a) for a in call.args if a}) < sum(a is not None for a in call.args) for call in calls(t))


VARIATIONS: dict[str, dict[str, Callable[[Topology], bool]]] = {
    "residual": {
        "concatenated": applies("Cat"),
        "scaled by a number": applies("Scale"),
        "scaled by a parameter": lambda t: any("self.scale" in held(body) for body in bodies(t)),
        "a projection on the skip path": lambda t: any(all(r.name != "x" for r in refs) for refs in operands(t)),
        "the skip path first": lambda t: any(refs[0].name == "x" for refs in operands(t)),
        "the skip path last": lambda t: any(refs[1].name == "x" for refs in operands(t)),
        "several blocks": lambda t: sum(map(skips, bodies(t))) > 1,
        "in nn.Sequential": has(Sequential),
        "alone": lambda t: isinstance(t.module, Composite) and skips(t.module),
    },
    "branch-and-merge": {
        **{name: applies(name) for name in ("Add", "Mul", "Maximum", "Cat", "Stack", "MatMul")},
        "an unused branch": dead,
        "a branch without loss": lambda t: outputs(t) > losses(t),
        "two losses": lambda t: losses(t) > 1,
    },
    "nested": {
        **{kind.__name__: has(kind) for kind in (Sequential, ModuleList, ModuleDict)},
        **{f"depth {n}": lambda t, n=n: depth(t.module) == n for n in range(3, 7)},  # type: ignore[misc]
    },
    "shared-module": {
        "one name": lambda t: not t.ties,
        "two names": lambda t: any(target.split(".")[-1].startswith("m") for target, _ in t.ties),
        "two names, one deeper": lambda t: any(target.endswith(".0") for target, _ in t.ties),
        "a Linear": lambda t: any(type(call.module).__name__ == "Linear" for call in repeated(t)),
        "a ReLU": lambda t: any(type(call.module).__name__ == "ReLU" for call in repeated(t)),
        "a module of our own": lambda t: any(isinstance(c.module, Composite) for c in repeated(t)) and not recurses(t),
        "recursion": recurses,
        "recursion of the root": depth_given,
        "recursion inside the root": lambda t: recurses(t) and not depth_given(t),
        "two inputs": lambda t: len(flags(t)) == 2,
        "an input without gradient": lambda t: not all(flags(t)),
        "concatenated": applies("Cat"),
        "several outputs": lambda t: outputs(t) > 1,
    },
    "shared-parameter": {
        **{f"tied {n}": lambda t, n=n: n in str(t.ties) for n in ("weight", "bias")},  # type: ignore[misc]
        "weight and bias": lambda t: len(t.ties) == 2,
        "a list": has(ParameterList),
        "a dictionary": has(ParameterDict),
        "a parameter of the body": lambda t: any("self.w" in held(body) for body in bodies(t)),
        "a child's weight": lambda t: any("self.m0.weight" in held(body) for body in bodies(t)),
        "given to a module": given_a_parameter,
        "an Embedding": lambda t: any(type(module).__name__ == "Embedding" for _, module in walk(t.module)),
        "no input with gradient": lambda t: not any(flags(t)),
    },
    "multi-input": {
        **{f"{n} inputs": lambda t, n=n: len(flags(t)) == n for n in (2, 3, 4)},  # type: ignore[misc]
        "all with gradient": lambda t: len(flags(t)) > 1 and all(flags(t)),
        "some with gradient": lambda t: any(flags(t)) and not all(flags(t)),
        "none with gradient": lambda t: not any(flags(t)),
        "one tensor twice": lambda t: isinstance(t.main[0], Call) and len(set(t.main[0].args)) < len(t.main[0].args),
        "one tensor twice inside": lambda t: (
            called_with_one_twice(t) and len(set(named(t.main[0]))) == len(named(t.main[0]))
        ),
        **{
            name: lambda t, name=name: any(type(m).__name__ == name for _, m in walk(t.module))  # type: ignore[misc]
            for name in ("Bilinear", "GRUCell", "MSELoss")
        },
    },
    "unused-input": {
        "at the root": lambda t: isinstance(t.module, Composite) and ignores(t.module),
        "inside": lambda t: isinstance(t.module, Composite) and not ignores(t.module),
        "with gradient": lambda t: all(flags(t)),
        "without gradient": lambda t: any(flags(t)) and not all(flags(t)),
        "none with gradient": lambda t: not any(flags(t)),
    },
    "pass-through": {
        "training": lambda t: t.training,
        "eval": lambda t: not t.training,
        "the root": lambda t: not children(t.module),
        "an empty Sequential": lambda t: any(m == Sequential(()) for _, m in walk(t.module)),
        "a module of our own": lambda t: any(not body.body and body.gives == Ref("x") for body in bodies(t)),
        **{
            name: lambda t, name=name: any(type(m).__name__ == name for _, m in walk(t.module))  # type: ignore[misc]
            for name in ("Identity", "Dropout", "AlphaDropout")
        },
        "beside another output": lambda t: outputs(t) > 1,
        "without gradient": lambda t: not any(flags(t)),
    },
}
VARIED = [(family, name) for family, variations in VARIATIONS.items() for name in variations]


@pytest.mark.slow
@every
def test_every_topology_keeps_the_promise_of_its_family(family: str) -> None:
    assert [t for t in drawn(FAMILIES[family]) if not PROMISES[family](t)] == []


@pytest.mark.slow
@pytest.mark.parametrize(("family", "variation"), VARIED, ids=map(" - ".join, VARIED))
def test_every_variation_is_reached(family: str, variation: str) -> None:
    assert reaches(FAMILIES[family], VARIATIONS[family][variation])


@every
def test_every_dtype_and_both_kinds_of_loss_are_reached(family: str) -> None:
    assert {t.dtype for t in drawn(FAMILIES[family])} == {"float64", "float32"}
    assert {t.training for t in drawn(FAMILIES[family])} == {True, False}
    assert {len(t.main) > 2 for t in drawn(FAMILIES[family])} == {True, False}


@every
def test_the_script_of_a_topology_runs(family: str) -> None:
    for topology in drawn(FAMILIES[family])[::10]:
        scripted(topology)
