"""The families whose feature lies in what requires grad, in shapes and dtypes, or in the passes that main runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType

import pytest

from hookcheck.oracle.expected import Expected
from hookcheck.oracle.graph import Node
from hookcheck.oracle.trace import Tensor
from hookcheck.topology.contexts import COMPILING, MODES
from hookcheck.topology.families import (
    accumulate,
    broadcast,
    compiled,
    context,
    double_backward,
    frozen_parameters,
    grad_of_some,
    mixed_dtype,
    no_grad_evaluation,
    no_grad_input,
    parameter_as_input,
    partial_grad_inputs,
    retain_graph_twice,
    scalar_and_empty,
    several_losses,
    train_eval,
)
from hookcheck.topology.families.context import OFFERED
from hookcheck.topology.families.double_backward import CURVED, reads_everywhere
from hookcheck.topology.layers.convolution import Conv1d
from hookcheck.topology.layers.convolving import Convolving
from hookcheck.topology.layers.transposed import ConvTranspose1d
from hookcheck.topology.model import (
    Apply,
    Backward,
    Call,
    Composite,
    Grad,
    Statement,
    Topology,
    Train,
    Within,
    inside,
    nesting,
    statements,
    tensor_classes,
    tensor_words,
    walk,
)
from hookcheck.topology.tensors import SPARSE_GRADIENT, TENSORS
from hookcheck.topology.tree import Ref, Tree
from hookcheck.topology.values import parameter_shapes, values

from .running import scripted
from .samples import runnable
from .sampling import drawn, reaches

FAMILIES = (
    frozen_parameters,
    partial_grad_inputs,
    scalar_and_empty,
    broadcast,
    mixed_dtype,
    train_eval,
    several_losses,
    accumulate,
    retain_graph_twice,
    grad_of_some,
    double_backward,
    parameter_as_input,
    context,
    compiled,
)


def label(value: object) -> str:
    return value.__name__.rpartition(".")[2] if isinstance(value, ModuleType) else ""


def reads_its_input(node: Node) -> bool:
    layer = node.primitive
    return not isinstance(layer, Convolving) or reads_everywhere(layer, node.inputs[0].array.shape)


@cache
def worked_out(topology: Topology) -> Expected:
    return Expected(topology, values(topology))


def tensors(topology: Topology) -> Iterator[Tensor]:
    """Every tensor that a step takes or that enters or leaves a module."""
    trace = worked_out(topology).trace
    for node in trace.nodes:
        yield from node.inputs
    for call in trace.calls:
        yield from (t for t in (*call.args, *call.outputs) if t is not None)


def flat(topology: Topology) -> list[Statement]:
    """The statements of main, those inside ``Within`` in its place."""

    def opened(body: tuple[Statement, ...]) -> Iterator[Statement]:
        for statement in body:
            yield from opened(statement.body) if isinstance(statement, Within) else (statement,)

    return [*opened(topology.main)]


def backwards(topology: Topology) -> list[Backward]:
    return [s for s in flat(topology) if isinstance(s, Backward)]


def grads(topology: Topology) -> list[Grad]:
    return [s for s in flat(topology) if isinstance(s, Grad)]


def calls(topology: Topology) -> list[Call]:
    return [s for s in flat(topology) if isinstance(s, Call)]


def labels(backward: Backward) -> tuple[tuple[Ref, ...], tuple[Ref, ...]]:
    return backward.outputs, backward.cotangents


def mixed(topology: Topology) -> list[str]:
    """The paths of calls of which some tensor arguments require grad and some do not."""
    flags = [(c.path, {t.requires_grad for t in c.args if t is not None}) for c in worked_out(topology).trace.calls]
    return [path for path, requires in flags if len(requires) == 2]


def orders(topology: Topology) -> set[tuple[bool, ...]]:
    return {tuple(t.requires_grad for t in c.args if t is not None) for c in worked_out(topology).trace.calls}


def special(topology: Topology) -> set[tuple[int, ...]]:
    """The shapes without dimensions or elements among the tensors that modules take and give."""
    shapes = {t.array.shape for c in worked_out(topology).trace.calls for t in (*c.args, *c.outputs) if t is not None}
    return {shape for shape in shapes if not all(shape) or not shape}


def broadcasts(topology: Topology) -> set[str]:
    """The names of the operations whose operands are of different shapes."""
    nodes = [n for n in worked_out(topology).trace.nodes if n.primitive is not None]
    names = {"Add", "Mul", "Sub", "Maximum", "Minimum", "Div", "Expand"}
    operations = set()
    for node in nodes:
        name = type(node.primitive).__name__
        different = len({t.array.shape for t in (*node.inputs,)} | set(node.shapes)) > 1
        if name in names and different:
            operations.add(name)
    return operations


def dtypes(topology: Topology) -> set[str]:
    return worked_out(topology).trace.dtypes & {*REAL, *COMPLEX}


REAL = ("float64", "float32", "bfloat16", "float16")
COMPLEX = ("complex128", "complex64")


def modes(topology: Topology) -> list[Train]:
    return [s for s in topology.main if isinstance(s, Train)]


def asked(topology: Topology) -> list[Ref]:
    return [ref for s in topology.main if isinstance(s, (Grad, Backward)) for ref in s.inputs]


def names(tree: Tree) -> str:
    return tree.name if isinstance(tree, Ref) else ""


def passed(topology: Topology) -> set[str]:
    """The parameters that are arguments of a module call, as the call names them."""
    every = [s for s in statements(topology) if isinstance(s, Call)]
    return {names(a) for s in every for a in s.args if "." in names(a)}


def receives_a_parameter(topology: Topology) -> bool:
    """Whether a call takes a parameter, or what its caller was given of it."""
    trace = worked_out(topology).trace
    shared = {id(trace.leaves[name]) for name in parameter_shapes(topology)}
    return any(id(t) in shared for call in trace.calls for t in call.args if t is not None)


def steps(topology: Topology) -> set[str]:
    """The layers and operations of a topology."""
    ops = {type(s.op).__name__ for s in statements(topology) if isinstance(s, Apply)}
    return ops | {type(module).__name__ for _, module in walk(topology.module)}


def dtype_in_contexts(topology: Topology) -> str:
    """float64, which autocast leaves alone, but where a tensor is of a class that has another dtype."""
    return next((TENSORS[name].dtype for name in tensor_classes(topology) if TENSORS[name].dtype), "float64")


PROMISES: dict[ModuleType, Callable[[Topology], bool]] = {
    frozen_parameters: lambda t: set(t.frozen) <= set(parameter_shapes(t)) and bool(t.frozen),
    partial_grad_inputs: lambda t: "" in mixed(t),
    scalar_and_empty: lambda t: bool(special(t)),
    broadcast: lambda t: bool(broadcasts(t)),
    mixed_dtype: lambda t: len(dtypes(t)) > 1 or any(i.domain in ("index", "mask") for i in t.inputs)
    or t.dtype in ("bfloat16", "float16", *COMPLEX),
    train_eval: lambda t: len(calls(t)) > 1 and bool(modes(t)),
    several_losses: lambda t: sum(len(b.outputs) for b in backwards(t)) > 1,
    accumulate: lambda t: len(calls(t)) > 1 and len(backwards(t)) == len(calls(t)),
    retain_graph_twice: lambda t: len(calls(t)) == 1 and sum(b.retain_graph for b in backwards(t)) >= 1
    and len(backwards(t)) > 1,
    grad_of_some: lambda t: bool(asked(t)),
    double_backward: lambda t: len([g for g in grads(t) if g.create_graph]) == 1
    and len(worked_out(t).trace.passes) == 2
    and all(map(reads_its_input, worked_out(t).trace.nodes)),
    parameter_as_input: receives_a_parameter,
    context: lambda t: 1 <= len(inside(t)) <= 6 and t.dtype == dtype_in_contexts(t),
    compiled: lambda t: bool({*inside(t)} & {*COMPILING}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=label)
def test_every_topology_keeps_the_promise_of_its_family(family: ModuleType) -> None:
    assert [t for t in drawn(family.topologies) if not PROMISES[family](t)] == []


@pytest.mark.parametrize("count", [1, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", FAMILIES, ids=label)
def test_a_few_scripts_run(family: ModuleType, count: int) -> None:
    for topology in drawn(family.topologies)[:count]:
        scripted(runnable(topology))


@pytest.mark.parametrize("family", FAMILIES, ids=label)
def test_something_requires_grad_in_every_pass(family: ModuleType) -> None:
    for topology in drawn(family.topologies):
        passes = worked_out(topology).trace.passes
        assert passes
        assert all(any(root.requires_grad for root in one.roots) for one in passes)


@pytest.mark.parametrize("family", FAMILIES, ids=label)
def test_losses_and_cotangents_modes_and_dtypes_are_drawn(family: ModuleType) -> None:
    topologies = drawn(family.topologies)
    assert {bool(b.cotangents) for t in topologies for b in (*backwards(t), *grads(t))} == {True, False}
    assert family in (context, compiled) or {"float64", "float32"} <= {t.dtype for t in topologies}
    assert {t.training for t in topologies} == ({True} if family is train_eval else {True, False})


CORNERS: list[tuple[ModuleType, str, Callable[[Topology], bool]]] = [
    *((context, name, lambda t, name=name: name in inside(t)) for names in OFFERED.values() for name in names),
    *((context, f"{a} within {b}", lambda t, pair=(b, a): pair in nesting(t)) for a in MODES for b in MODES),
    *((compiled, name, lambda t, name=name: name in tensor_words(t))
      for name in (*(name for name, each in TENSORS.items() if each.flat), SPARSE_GRADIENT)),
    *((compiled, f"{name} {place}", lambda t, name=name, is_there=is_there: name in inside(t) and is_there(t))
      for name in COMPILING for place, is_there in (
        ("of a class that is given", lambda t: bool(t.inputs[0].tensor)),
        ("of a class that is a parameter", lambda t: bool(t.classes)),
        ("of a class that is made", lambda t: bool(tensor_classes(t)) and not t.inputs[0].tensor and not t.classes))),
    (frozen_parameters, "all", lambda t: set(t.frozen) == set(parameter_shapes(t))),
    (frozen_parameters, "one", lambda t: len(t.frozen) == 1 < len(parameter_shapes(t))),
    (frozen_parameters, "biases alone", lambda t: {n.endswith("bias") for n in t.frozen} == {True}),
    (frozen_parameters, "all but the biases", lambda t: t.frozen == tuple(
        n for n in parameter_shapes(t) if not n.endswith("bias")) and len(t.frozen) < len(parameter_shapes(t))),
    (frozen_parameters, "the first layer", lambda t: {n.rpartition(".")[0] for n in t.frozen} == {"m0"}),
    (frozen_parameters, "deep", lambda t: any(n.count(".") > 2 for n in t.frozen)),
    (frozen_parameters, "plain data", lambda t: not t.inputs[0].requires_grad),
    (partial_grad_inputs, "inside", lambda t: any(mixed(t)[1:])),
    (partial_grad_inputs, "grad first", lambda t: (True, False) in orders(t)),
    (partial_grad_inputs, "grad last", lambda t: (False, True) in orders(t)),
    (partial_grad_inputs, "three", lambda t: len([i for i in t.inputs if i.name.startswith("x")]) == 3),
    (partial_grad_inputs, "Bilinear", lambda t: any(type(m).__name__ == "Bilinear" for _, m in walk(t.module))),
    (scalar_and_empty, "0-dim input", lambda t: any(i.name.startswith("x") and not i.shape for i in t.inputs)),
    (scalar_and_empty, "empty input", lambda t: not all(t.inputs[0].shape)),
    (scalar_and_empty, "no rows", lambda t: t.inputs[0].shape == (0, 3)),
    (scalar_and_empty, "no columns", lambda t: t.inputs[0].shape == (2, 0)),
    (scalar_and_empty, "a loss as output", lambda t: worked_out(t).trace.calls[0].outputs[0].array.shape == ()),
    (scalar_and_empty, "parameters with no gradient but zeros", lambda t: any(
        not g.any() for n, g in worked_out(t).leaf_gradients.items() if n in parameter_shapes(t))),
    *((broadcast, name, lambda t, name=name: name in broadcasts(t))
      for name in ("Add", "Mul", "Sub", "Maximum", "Minimum", "Div", "Expand")),
    (broadcast, "a scalar", lambda t: t.inputs[1].shape == ()),
    (broadcast, "both ways", lambda t: any(n.primitive and len({*n.shapes, *(x.array.shape for x in n.inputs)}) == 3
                                           for n in worked_out(t).trace.nodes)),
    *((mixed_dtype, name, lambda t, name=name: t.dtype == name) for name in (*REAL, *COMPLEX)),
    *((mixed_dtype, f"to {name}", lambda t, name=name: any(
        isinstance(s, Apply) and s.op.casts == name for s in statements(t))) for name in (*REAL, *COMPLEX)),
    *((mixed_dtype, f"16 bits {name}", lambda t, name=name: t.dtype in REAL[2:] and any(
        type(m).__name__ == name for _, m in walk(t.module))) for name in ("LayerNorm", "GELU", "Softmax")),
    *((mixed_dtype, f"complex {name}", lambda t, name=name: t.dtype in COMPLEX and any(
        type(m).__name__ == name for _, m in walk(t.module)))
      for name in ("LSTM", "RMSNorm", "Conv3d", "ReplicationPad2d", "TripletMarginLoss")),
    *((mixed_dtype, name, lambda t, name=name: any(
        isinstance(s, Apply) and type(s.op).__name__ == name for s in statements(t)))
      for name in ("Complex", "Real", "Imag", "ViewAsReal")),
    *((mixed_dtype, domain, lambda t, domain=domain: any(i.domain == domain for i in t.inputs))
      for domain in ("index", "mask")),
    (mixed_dtype, "a complex cotangent", lambda t: any(b.cotangents for b in backwards(t))
     and worked_out(t).trace.calls[0].outputs[0].dtype in COMPLEX),
    (mixed_dtype, "0-dim beside another", lambda t: len(t.inputs) > 1 and t.inputs[1].shape == () != t.inputs[0].shape
     and bool(t.inputs[1].dtype)),
    *((train_eval, name, lambda t, name=name: name in steps(t)) for name in train_eval.KINDS),
    *((no_grad_evaluation, any_of[0], lambda t, any_of=any_of: bool(steps(t) & {*any_of})) for any_of in (
        ("MultiheadAttention",), ("LSTM", "GRU", "RNN"), ("BatchNorm2d", "InstanceNorm2d", "GroupNorm"),
        ("MaxPool2d", "AvgPool2d", "MaxPool1d"), ("CrossEntropyLoss", "MSELoss"))),
    (no_grad_evaluation, "in a module", lambda t: any(isinstance(m, Composite) for p, m in walk(t.module) if p)),
    *((no_grad_input, f"indices, then {any_of[0]}", lambda t, any_of=any_of: "Embedding" in steps(t)
       and bool(steps(t) & {*any_of})) for any_of in (
        ("LSTM", "GRU", "RNN"), ("MultiheadAttention", "TransformerEncoderLayer"), ("Linear",), ("LayerNorm",))),
    (train_eval, "one layer in eval", lambda t: any(s.target and not s.training for s in modes(t))),
    (train_eval, "train, eval, train", lambda t: [s.training for s in modes(t) if not s.target][-2:] == [False, True]),
    (train_eval, "no_grad", lambda t: any(isinstance(s, Within) for s in t.main)),
    (train_eval, "backward in eval", lambda t: len(backwards(t)) > 1 and not modes(t)[-1].training),
    (several_losses, "together", lambda t: len(backwards(t)) == 1),
    (several_losses, "one by one", lambda t: len(backwards(t)) == 2),
    (several_losses, "three", lambda t: sum(len(b.outputs) for b in backwards(t)) == 3),
    (several_losses, "leaks", lambda t: any(i.name.startswith("v_h") for i in t.inputs)),
    (several_losses, "outputs alone", lambda t: not any(i.name.startswith("v_h") for i in t.inputs)),
    (accumulate, "three", lambda t: len(calls(t)) == 3),
    (accumulate, "the same inputs", lambda t: len({s.args for s in calls(t)}) == 1),
    (accumulate, "other inputs", lambda t: len({s.args for s in calls(t)}) == len(calls(t))),
    (accumulate, "all forwards first", lambda t: isinstance(t.main[1], Call)),
    (retain_graph_twice, "three", lambda t: len(backwards(t)) == 3),
    (retain_graph_twice, "the same cotangents", lambda t: len(set(map(labels, backwards(t)))) == 1),
    (retain_graph_twice, "others", lambda t: len(set(map(labels, backwards(t)))) > 1),
    (retain_graph_twice, "freed at last", lambda t: not backwards(t)[-1].retain_graph),
    (grad_of_some, "grad", lambda t: bool(grads(t))),
    (grad_of_some, "backward", lambda t: any(b.inputs for b in backwards(t))),
    *((grad_of_some, f"backward for {what}", lambda t, what=what: any(r.name == what for b in backwards(t) if b.out
       for r in b.inputs)) for what in ("y", "z", "leaked")),
    (grad_of_some, "then all", lambda t: any(not b.inputs for b in backwards(t))),
    (grad_of_some, "an input", lambda t: any(r.name == "x" for r in asked(t))),
    (grad_of_some, "a value of main", lambda t: any(r.name == "z" for r in asked(t))),
    (grad_of_some, "an output", lambda t: any(r.name == "y" for r in asked(t))),
    (grad_of_some, "a leak", lambda t: any(r.name == "leaked" for r in asked(t))),
    (grad_of_some, "parameters alone", lambda t: all(r.name.startswith("net.") for r in asked(t))),
    (grad_of_some, "several", lambda t: len(asked(t)) > 2),
    *((double_backward, any_of[0], lambda t, any_of=any_of: bool(steps(t) & {*any_of})) for any_of in (
        *((kind.__name__,) for kind in CURVED), ("Linear",), ("LayerNorm", "GroupNorm"),
        ("Softmax", "Softmin", "LogSoftmax"), ("Conv1d", "Conv2d"),
        ("ConvTranspose1d", "ConvTranspose2d"), ("AvgPool1d", "AvgPool2d"),
        ("BatchNorm1d", "BatchNorm2d", "InstanceNorm1d", "InstanceNorm2d"), ("MSELoss", "CosineSimilarity"))),
    (double_backward, "for inputs", lambda t: any(r.name == "x" for r in grads(t)[0].inputs)),
    (double_backward, "for parameters", lambda t: any("." in r.name for r in grads(t)[0].inputs)),
    (double_backward, "backward", lambda t: any(not b.inputs for b in backwards(t))),
    (double_backward, "backward for some", lambda t: any(b.inputs for b in backwards(t))),
    (double_backward, "grad of grad", lambda t: len(grads(t)) == 2),
    (double_backward, "beside a loss", lambda t: any(isinstance(s, Apply) and s.out == "total" for s in t.main)),
    (double_backward, "two inputs", lambda t: t.inputs[0].name == "x0"),
    (parameter_as_input, "its own", lambda t: "self.w" in passed(t)),
    (parameter_as_input, "a child's", lambda t: "self.m0.weight" in passed(t)),
    (parameter_as_input, "from main", lambda t: "net.m0.weight" in passed(t)),
    (parameter_as_input, "frozen", lambda t: bool(t.frozen)),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.one_in(4)
@pytest.mark.parametrize(("family", "corner", "condition"), CORNERS, ids=[f"{label(f)}: {c}" for f, c, _ in CORNERS])
def test_every_variation_is_reached(family: ModuleType, corner: str, condition: Callable[[Topology], bool]) -> None:
    assert reaches(family.topologies, condition)


def test_a_convolution_that_reads_padding_alone_is_told_from_one_that_reads_its_input() -> None:
    assert reads_everywhere(Conv1d(1, 1, (2,), padding=(1,), bias=False), (1, 1, 2))
    assert not reads_everywhere(Conv1d(1, 1, (1,), padding=(1,)), (1, 1, 2))
    assert not reads_everywhere(ConvTranspose1d(1, 1, (1,), stride=(2,), unbatched=True), (1, 2))
