"""The families about what modules are given and give: is the feature there in each draw, and each variation in some?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from hookcheck.oracle.expected import Expected
from hookcheck.topology.families import (
    container_input,
    container_output,
    detached_inside,
    inplace,
    keyword_input,
    multi_output,
    non_tensor_argument,
    tensor_class,
    view,
)
from hookcheck.topology.model import (
    Apply,
    Call,
    Composite,
    Topology,
    Within,
    statements,
    tensor_classes,
    walk,
)
from hookcheck.topology.ops.views import Detach
from hookcheck.topology.primitive import SingleStep
from hookcheck.topology.tensors import TENSORS
from hookcheck.topology.tree import Literal, Pack, Ref, Tree
from hookcheck.topology.values import values

from .conditions import (
    Condition,
    calls,
    composite_calls,
    cuts,
    given_back,
    gives_a_container,
    gives_several,
    lost,
    makes_a_view,
    named,
    one_step_with_several_outputs,
    packs,
    passed,
    results,
    steps,
    takes_a_container,
    takes_a_keyword,
    takes_a_literal,
    writes,
)
from .running import array, built, gradients, scripted
from .samples import runnable
from .sampling import drawn, reaches

PROMISES: dict[ModuleType, Condition] = {
    multi_output: gives_several,
    container_output: gives_a_container,
    container_input: takes_a_container,
    non_tensor_argument: takes_a_literal,
    keyword_input: takes_a_keyword,
    view: makes_a_view,
    inplace: lambda t: writes(t) or any(getattr(step, "inplace", False) for step in steps(t)),
    detached_inside: cuts,
    tensor_class: lambda t: bool(tensor_classes(t)) or named("Embedding")(t) or named("EmbeddingBag")(t),
}

every = pytest.mark.parametrize("family", PROMISES, ids=lambda family: family.__name__.rpartition(".")[2])


@pytest.mark.slow
@every
def test_every_member_has_the_feature_of_its_family(family: ModuleType) -> None:
    assert all(map(PROMISES[family], drawn(family.topologies)))


@pytest.mark.parametrize("count", [2, pytest.param(40, marks=pytest.mark.slow)])
@every
def test_every_member_runs_on_torch_and_the_oracle_has_its_gradients(family: ModuleType, count: int) -> None:
    for topology in drawn(family.topologies)[:count]:
        topology = runnable(topology)
        names, expected = built(topology), Expected(topology, values(topology))
        for name, gradient in gradients(topology, names).items():
            known = expected.leaf_gradients.get(name)
            assert (gradient is None) == (known is None), name
            if known is not None:
                assert expected.close(array(gradient), known, "cpu"), name


@pytest.mark.parametrize("count", [1, pytest.param(10, marks=pytest.mark.slow)])
@every
def test_the_script_of_a_member_runs(family: ModuleType, count: int) -> None:
    for topology in drawn(family.topologies)[:count]:
        assert "y" in scripted(runnable(topology))


def has_item(condition: Callable[[Tree], bool]) -> Condition:
    return lambda t: any(condition(item) for items in results(t) for item in items)


def literal_is(kind: type) -> Callable[[Tree], bool]:
    return lambda tree: isinstance(tree, Literal) and type(tree.value) is kind


def repeated(topology: Topology) -> bool:
    return any(len(set(items)) < len(items) for items in results(topology))


def detached_output(topology: Topology) -> bool:
    outs = {s.out for s in statements(topology) if isinstance(s, Apply) and isinstance(s.op, Detach)}
    return has_item(lambda item: isinstance(item, Ref) and item.name in outs)(topology)


def unused_output(topology: Topology) -> bool:
    root = topology.module.gives if isinstance(topology.module, Composite) else None
    return isinstance(root, Pack) and len(lost(topology)) < sum(isinstance(item, Ref) for item in root.items)


def whole_result(topology: Topology) -> bool:
    """A module that gives on, untouched, the tuple that one step gave."""
    return one_step_with_several_outputs(topology) and any(
        isinstance(tree, Ref) and not tree.path for tree in given_back(topology)
    )


def packed_as(kind: str, inner: bool) -> Condition:
    return lambda t: any(isinstance(tree, Pack) and tree.kind == kind for tree in given_back(t, inner))


def nested(trees: Callable[[Topology], Iterator[Tree]]) -> Condition:
    return lambda t: any(isinstance(i, Pack) for tree in trees(t) for pack in packs(tree) for i in pack.items)


def by_keyword(kind: type) -> Condition:
    return lambda t: any(isinstance(tree, kind) for call in composite_calls(t) for _, tree in call.kwargs)


def by_position(kind: type) -> Condition:
    return lambda t: any(isinstance(tree, kind) for call in composite_calls(t) for tree in call.args)


def held_in(kind: str) -> Condition:
    return lambda t: any(pack.kind == kind for tree in passed(t) for pack in packs(tree))


def keyword_only(topology: Topology) -> bool:
    return any(isinstance(module, Composite) and module.keywords for _, module in walk(topology.module))


def keyword_that_could_be_positional(topology: Topology) -> bool:
    only = {name for _, m in walk(topology.module) if isinstance(m, Composite) for name in m.keywords}
    return any(
        key not in only for call in composite_calls(topology) for key, tree in call.kwargs if isinstance(tree, Ref)
    )


def flags(topology: Topology, keyword: bool) -> list[bool]:
    """Whether each input that is passed by keyword, or by position, requires grad."""
    grads = {i.name: i.requires_grad for i in topology.inputs if i.name.startswith("x")}
    trees = [call.kwargs if keyword else enumerate(call.args) for call in composite_calls(topology)]
    return [grads[tree.name] for pairs in trees for _, tree in pairs if isinstance(tree, Ref) and tree.name in grads]


def only_the_keyword_requires_grad(topology: Topology) -> bool:
    positional = flags(topology, keyword=False)
    return any(flags(topology, keyword=True)) and bool(positional) and not any(positional)


def around(places: Callable[[list[bool]], bool]) -> Condition:
    """Where literals lie among positional tensors: each call as a list, True for a literal."""
    return lambda t: any(
        places([isinstance(tree, Literal) for tree in call.args if isinstance(tree, Literal) or tree.name[0] == "x"])  # type: ignore[union-attr]
        for call in composite_calls(t)
    )


def returned_literal(topology: Topology) -> bool:
    return has_item(lambda item: isinstance(item, Ref) and item.name.startswith("n"))(topology)


def passed_on_literal(topology: Topology) -> bool:
    return any(isinstance(tree, Ref) and tree.name.startswith("n") for tree in passed(topology))


@pytest.mark.slow
@pytest.mark.parametrize("name", TENSORS)
def test_tensors_of_every_class_are_drawn_wherever_they_can_be(name: str) -> None:
    """As an input that requires grad and one that does not, made inside, and as a parameter. Where it has no
    dimensions, nothing but the input has a gradient."""
    tensor_kind = TENSORS[name]
    if 0 not in tensor_kind.ranks:
        assert reaches(
            tensor_class.topologies, lambda t: any(i.tensor == name and not i.requires_grad for i in t.inputs)
        )
    if not tensor_kind.constant:
        assert reaches(tensor_class.topologies, lambda t: any(i.tensor == name and i.requires_grad for i in t.inputs))
    if not tensor_kind.leaf:
        assert reaches(tensor_class.topologies, lambda t: any(getattr(s, "tensor", "") == name for s in steps(t)))
    if name != "parameter":
        assert reaches(tensor_class.topologies, lambda t: name in dict(t.classes).values())


def only_views(topology: Topology) -> bool:
    bodies = [m.body for _, m in walk(topology.module) if isinstance(m, Composite)]
    return any(all(isinstance(s, Apply) and s.op.views for s in body) for body in bodies)


def forbidden(topology: Topology) -> bool:
    return Expected(topology, values(topology)).trace.allowed is not None


def writing_layer(topology: Topology) -> bool:
    return any(isinstance(step, SingleStep) and step.writes for step in steps(topology))


WRITERS = [kind.__name__ for kind in inplace.LAYERS]


def written_by(*names: str) -> Condition:
    return lambda t: any(type(s).__name__ in names and s.writes for s in steps(t) if isinstance(s, SingleStep))


def written_after(names: tuple[str, ...]) -> Condition:
    """Whether a layer that works in place comes right after one of those of these names."""

    def follows(topology: Topology) -> bool:
        kinds = dict(walk(topology.module))
        for path, module in kinds.items():
            producers: dict[str, str] = {}
            for s in module.body if isinstance(module, Composite) else ():
                if isinstance(s, Call) and s.args and isinstance(s.args[0], Ref):
                    layer = kinds[f"{path}.{s.target}" if path else s.target]
                    if producers.get(s.args[0].name) in names and isinstance(layer, SingleStep) and layer.writes:
                        return True
                    producers[s.out] = type(layer).__name__
        return False

    return follows


def write_to(argument: bool) -> Condition:
    """Whether a module writes to its argument, or its caller to what a module was given or gave."""

    def writes_so(topology: Topology) -> bool:
        for path, module in walk(topology.module):
            if not isinstance(module, Composite):
                continue
            met = set(module.takes) if argument and path else set()
            for s in module.body:
                if isinstance(s, Apply) and s.op.writes and isinstance(s.args[0], Ref) and s.args[0].name in met:
                    return True
                if isinstance(s, Call) and not argument:
                    met |= {s.out, *(tree.name for tree in s.args if isinstance(tree, Ref))}
        return False

    return writes_so


def write_under_no_grad(topology: Topology) -> bool:
    blocks = (s for s in statements(topology) if isinstance(s, Within))
    return any(isinstance(s, Apply) and s.op.writes for block in blocks for s in block.body)


def write_in_main(topology: Topology) -> bool:
    return any(isinstance(s, Apply) and s.op.writes for s in topology.main)


def cut_module(topology: Topology) -> bool:
    """A module of our own that cuts all that it gives."""
    bodies = [m.body for path, m in walk(topology.module) if isinstance(m, Composite) and path]
    return any(isinstance(body[0], Within) or (isinstance(body[0], Apply) and len(body) < 3) for body in bodies if body)


CORNERS: list[tuple[ModuleType, str, Condition]] = [
    *[(multi_output, kind.__name__, has_item(literal_is(kind))) for kind in (int, float, str, bool, type(None))],
    (multi_output, "repeated", repeated),
    (multi_output, "detached", detached_output),
    (multi_output, "unused", unused_output),
    (multi_output, "whole", whole_result),
    *[(multi_output, what, named(*names)) for what, names in multi_output.SEVERAL.items()],
    *[(container_output, f"{k}-{i}", packed_as(k, i)) for k in container_output.KINDS for i in (False, True)],
    (container_output, "nested", nested(given_back)),
    *[(container_input, kind, held_in(kind)) for kind in container_input.KINDS],
    (container_input, "nested", nested(passed)),
    (container_input, "by keyword", by_keyword(Pack)),
    (container_input, "by position", by_position(Pack)),
    (container_input, "beside a tensor", lambda t: takes_a_container(t) and by_position(Ref)(t)),
    (non_tensor_argument, "before", around(lambda p: p[:1] == [True] and False in p)),
    (
        non_tensor_argument,
        "between",
        around(lambda p: p == [False, True, False] or (p[1:-1].count(True) > 0 and not p[0] and not p[-1])),
    ),
    (non_tensor_argument, "after", around(lambda p: p[-1:] == [True] and False in p)),
    (non_tensor_argument, "by keyword", by_keyword(Literal)),
    (non_tensor_argument, "returned", returned_literal),
    (non_tensor_argument, "passed on", passed_on_literal),
    (keyword_input, "keyword-only", keyword_only),
    (keyword_input, "could be positional", keyword_that_could_be_positional),
    (keyword_input, "alone", lambda t: any(call.kwargs and not call.args for call in calls(t))),
    (keyword_input, "beside positional ones", lambda t: any(call.kwargs and call.args for call in composite_calls(t))),
    (keyword_input, "alone in requiring grad", only_the_keyword_requires_grad),
    (keyword_input, "of a layer of torch", lambda t: any(dict(c.kwargs).get("input") for c in calls(t))),
    *[(view, name, named(name)) for name in (*view.VIEWS, "View")],
    (view, "only views", only_views),
    (view, "of the input, given back", has_item(lambda item: isinstance(item, Ref) and item.name == "x")),
    (inplace, "forbidden", forbidden),
    (inplace, "allowed", lambda t: not forbidden(t)),
    (inplace, "by a layer", writing_layer),
    *[(inplace, f"by {name}", written_by(name)) for name in WRITERS if "Dropout" not in name],
    (inplace, "by a dropout", written_by(*[name for name in WRITERS if "Dropout" in name])),
    (inplace, "by a layer after Linear", written_after(("Linear",))),
    (inplace, "by a layer after a convolution", written_after(("Conv1d", "Conv2d", "Conv3d"))),
    (inplace, "by a layer after a normalisation", written_after(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"))),
    (inplace, "to the argument", write_to(argument=True)),
    (inplace, "by the caller", write_to(argument=False)),
    (inplace, "under no_grad", write_under_no_grad),
    (inplace, "past a detach", lambda t: writes(t) and named("Detach")(t)),
    (inplace, "in main", write_in_main),
    (inplace, "to a view", lambda t: writes(t) and makes_a_view(t)),
    (detached_inside, "detach", named("Detach")),
    (detached_inside, "no_grad", lambda t: any(isinstance(s, Within) for s in statements(t))),
    (detached_inside, "one of two branches", named("Add", "Mul")),
    (detached_inside, "in a module of its own", cut_module),
    (detached_inside, "plain data", lambda t: not t.inputs[0].requires_grad),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "name", "condition"), CORNERS, ids=[f"{f.__name__[27:]}-{n}" for f, n, _ in CORNERS]
)
def test_every_variation_is_drawn(family: ModuleType, name: str, condition: Condition) -> None:
    assert reaches(family.topologies, condition), name


@every
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_modes_and_dtypes_are_drawn(family: ModuleType, training: bool, dtype: str) -> None:
    topologies = drawn(family.topologies)
    assert any(t.dtype == dtype for t in topologies)
    assert family is inplace or any(t.training is training for t in topologies)
