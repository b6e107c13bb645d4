"""mixed-dtype: tensors of several dtypes in one network, complex networks, and networks of 16 bits."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from hookcheck.topology.catalogue import known, layer_classes, op_classes
from hookcheck.topology.families.drawing import WIDTHS, Draw, shapes
from hookcheck.topology.families.fitting import that_take
from hookcheck.topology.families.grammar import OPS_ALONE, Value, Writer, fitted, having, overwrites
from hookcheck.topology.families.networks import network, topology
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Apply, Backward, Input, Statement, Topology
from hookcheck.topology.ops import Add, Mul, Sum
from hookcheck.topology.ops.arithmetic import Maximum, Sub
from hookcheck.topology.ops.complex import Complex, Conj, Real
from hookcheck.topology.ops.moving import To
from hookcheck.topology.primitive import MOST, Drawn, Op, Operand, Primitive, Shape
from hookcheck.topology.tree import Ref
from hookcheck.topology.values import WHOLE

PROMOTED = {
    ("float64", "float32"): "float64",
    ("float32", "float64"): "float64",
    ("float32", "bfloat16"): "float32",
    ("float32", "float16"): "float32",
    ("bfloat16", "float16"): "float32",
    ("float64", "complex64"): "complex128",
    ("float32", "complex64"): "complex64",
    ("float32", "complex128"): "complex128",
    ("complex128", "float64"): "complex128",
    ("complex64", "float64"): "complex128",
}
"""Two dtypes that meet, and that of the result (documentation of torch's tensor attributes, 'type promotion')."""

WEAKER = [pair for pair in PROMOTED if not pair[1].startswith("complex")]
"""Those whose second, without dimensions, changes nothing: it is of no higher kind than the first."""

CASTS = {
    "float64": ("float32", "bfloat16", "complex128", "complex64"),
    "float32": ("float64", "bfloat16", "float16", "complex64", "complex128"),
    "bfloat16": ("float32",),
    "float16": ("float32",),
    "complex128": ("complex64",),
    "complex64": ("complex128",),
}
"""What a network of one dtype casts to on its way; no complex one to a real one, of which torch warns."""

ANYWHERE = known((
    "Tanh", "Sigmoid", "ReLU", "Identity", "Neg", "Scale", "Clone", "SumOver", "Transpose", "Unsqueeze",
))  # fmt: skip
"""Steps without parameters or further operands, which real tensors of every dtype go through."""

ROUNDED_ONCE = having("rounded_once")
"""Layers that are one kernel each.

The CPU takes float16 since https://github.com/pytorch/pytorch/pull/98745 (activations) and 102070, 99590, 103315, 98819
and 96080 there (BatchNorm, LayerNorm, softmax, the pools), all before the first release that float16 is drawn for."""

CONVOLUTIONS = known(("Conv1d", "Conv2d"))
"""The same, for bfloat16 alone: the CPU convolves float16 or not as its instructions go (pytorch issue 121958)."""

DISTANCES = ("L1Loss", "PairwiseDistance", "TripletMarginLoss", "TripletMarginWithDistanceLoss")
"""What makes real numbers of complex ones, beside their parts."""

APART = {**dict.fromkeys(DISTANCES, "no further step would be complex"), **OPS_ALONE}
"""What takes complex tensors and is no step on the way, each with the reason; nor is what works in place, which only
some places allow."""

COMPLEX = tuple(
    kind
    for name, kind in {**layer_classes(), **op_classes()}.items()
    if kind.complex_since not in ("", Drawn.complex_since) and name not in APART and not overwrites(kind)
)
"""Steps that complex tensors go through."""

COMPLEX_INSIDE = tuple(kind for kind in COMPLEX if getattr(kind, "parameters", 0) is Primitive.parameters)
"""Those of them that complex tensors go through in a network whose parameters are real."""

COMPLEX_FIRST = tuple(kind for kind in COMPLEX_INSIDE if getattr(kind, "complex_since", "") == Complex.since)
"""Those that take them in every release that makes them of real ones: where no dtype is named, nothing tells that the
network needs a newer one (see `hookcheck.topology.needs.needs`)."""

PARTS = known(("Real", "Imag"))
"""What takes a part of any complex tensor."""

WAYS = known(("Real", "Imag", "ViewAsReal", *DISTANCES))
"""What makes a complex tensor real."""

REAL = {"complex128": "float64", "complex64": "float32"}
"""The dtype of the parts of a complex tensor."""


@st.composite
def topologies(draw: Draw) -> Topology:
    """A cast on the way; operands of two dtypes; a complex network; a complex part of a real one; 16 bits."""
    return draw(st.one_of(_cast(), _promoted(), _complex(), _complex_inside(), _of_16_bits()))


@st.composite
def _cast(draw: Draw) -> Topology:
    """A Linear, then steps in another dtype, at the root or in a module that casts; perhaps back and a Linear again.

    Back from a complex dtype to a real one leads what makes it real.
    """
    dtype = draw(st.sampled_from(sorted(CASTS, reverse=True)))
    other = draw(st.sampled_from(CASTS[dtype]))
    writer = Writer(draw, draw(shapes() if other not in REAL else of_any_rank()))
    (value,) = writer.step(writer.inputs[0], (Linear,))
    back = draw(st.booleans())
    target = Writer(draw, value.shape) if draw(st.booleans()) else writer
    (output,) = target.op(To(other), value if target is writer else target.inputs[0])
    output = complex_steps(target, output, COMPLEX_INSIDE) if other in REAL else steps(target, output, ANYWHERE)
    if back and other in REAL and dtype not in REAL:
        output = made_real(target, output, WAYS)
    if back:
        (output,) = target.op(To(dtype), output)
    if target is not writer:
        output = Value(Ref(writer.inner(target, output.ref, value)), output.shape)
    if back and Linear.takes(output.shape):
        (output,) = writer.step(output, (Linear,))
    return finished(draw, writer, output, dtype, dtype if back else other, needed=other)


@st.composite
def _promoted(draw: Draw) -> Topology:
    """What a Linear gives meets an input of another dtype, of integers or of bools, of one shape or without any."""
    beside = draw(st.sampled_from(["tensor", "scalar", "index", "mask"]))
    dtype, other = draw(st.sampled_from(WEAKER if beside == "scalar" else list(PROMOTED)))
    result = PROMOTED[dtype, other] if beside == "tensor" else dtype
    shape, width = draw(shapes()), draw(WIDTHS)
    writer = Writer(draw, shape, () if beside == "scalar" else (*shape[:-1], width))
    x, second = writer.inputs
    layer = Linear(shape[-1], width, draw(st.booleans()))
    (value,) = writer.call(writer.child(layer), layer, (x.ref,), (Operand(shape),))
    both = draw(st.permutations([value, second]))
    target = Writer(draw, *(v.shape for v in both)) if draw(st.booleans()) else writer
    ops = [Add(), Mul(), *([] if beside == "mask" else [Sub()]), *([] if result in REAL else [Maximum()])]
    (output,) = target.op(draw(st.sampled_from(ops)), *(both if target is writer else target.inputs))
    if target is not writer:
        output = Value(Ref(writer.inner(target, output.ref, *both)), output.shape)
    flags = draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    if beside in ("tensor", "scalar"):
        given = Input("x1", second.shape, flags[1], dtype=other)
    else:
        given = Input("x1", second.shape, domain=beside, below=4 if beside == "index" else 0)
    return finished(draw, writer, output, dtype, result, (Input("x0", shape, flags[0]), given))


@st.composite
def _complex(draw: Draw) -> Topology:
    """Complex parameters and inputs; a complex output, or a real one."""
    dtype = draw(st.sampled_from(["complex128", "complex64"]))
    writer = Writer(draw, draw(of_any_rank()))
    (value,) = writer.step(writer.inputs[0], (Linear,))
    value = complex_steps(writer, value, COMPLEX)
    ways = WAYS
    if draw(st.integers(0, 3)) == 3:
        (value,) = writer.op(Conj(), value)
        ways = PARTS  # torch.view_as_real raises for what is conjugated only when its numbers are asked for
    if draw(st.booleans()):
        return finished(draw, writer, made_real(writer, value, ways), dtype, REAL[dtype])
    return finished(draw, writer, value, dtype, dtype)


@st.composite
def _complex_inside(draw: Draw) -> Topology:
    """Two real tensors become a complex one, which goes through steps at the root or in a module and becomes real."""
    writer = Writer(draw, draw(of_any_rank()))
    (real,) = writer.step(writer.inputs[0], (Linear,))
    imaginary = steps(writer, real, ANYWHERE[:2])
    (value,) = writer.op(Complex(), real, imaginary)
    inner = Writer(draw, value.shape)
    output = complex_steps(inner, inner.inputs[0], COMPLEX_FIRST)
    output = Value(Ref(writer.inner(inner, output.ref, value)), output.shape)
    output = steps(writer, made_real(writer, output, WAYS), ANYWHERE)
    dtype = draw(st.sampled_from(["complex128", "complex64"]))
    return finished(draw, writer, output, REAL[dtype], REAL[dtype], needed=dtype)


@st.composite
def _of_16_bits(draw: Draw) -> Topology:
    """A small network of bfloat16 or float16."""
    dtype = draw(st.sampled_from(["bfloat16", "float16"]))
    writer = Writer(draw, draw(of_any_rank()))
    (value,) = writer.step(writer.inputs[0], (Linear,))
    kinds: Kinds = (*ANYWHERE, *ROUNDED_ONCE, *(CONVOLUTIONS if dtype == "bfloat16" else ()), Add, Mul)
    return finished(draw, writer, steps(writer, value, kinds), dtype, dtype)


Kinds = tuple[type[Drawn], ...]


def steps(writer: Writer, value: Value, kinds: Kinds) -> Value:
    """One or two steps of those kinds, on ``value``."""
    for _ in range(writer.draw(st.integers(1, 2))):
        (value,) = writer.step(value, that_take(kinds, value.shape))
    return value


def complex_steps(writer: Writer, value: Value, kinds: Kinds) -> Value:
    """One or two steps of those kinds with settings that complex tensors allow, each on one output of that before."""
    for _ in range(writer.draw(st.integers(1, 2))):
        step = fittings(that_take(kinds, value.shape), value.shape).filter(lambda drawn: bool(drawn[0].complex_since))
        value = writer.draw(st.sampled_from(writer.placed(value, *writer.draw(step))))
    return value


def made_real(writer: Writer, value: Value, ways: Kinds) -> Value:
    """What one of the ``ways`` makes of a complex value: a part of it, or both, or a distance from others."""
    return writer.step(value, that_take(ways, value.shape))[0]


@st.composite
def fittings(draw: Draw, kinds: Kinds, shape: Shape) -> tuple[Drawn, tuple[Operand, ...]]:
    """A step of one of ``kinds`` for ``shape``, a layer three times as often as an operation."""
    operation = draw(st.integers(0, 3)) == 3
    return fitted(draw, draw(st.sampled_from([kind for kind in kinds if issubclass(kind, Op) is operation])), shape)


def of_any_rank() -> st.SearchStrategy[Shape]:
    """The shape of an input, of each number of dimensions as often as of another: some layers take but one."""
    return st.integers(1, MOST).flatmap(lambda rank: shapes(rank, rank))


def finished(
    draw: Draw,
    writer: Writer,
    value: Value,
    dtype: str,
    result: str,
    given: tuple[Input, ...] = (),
    needed: str = "",
) -> Topology:
    """The network that gives ``value``, a tensor of dtype ``result``, and a backward by a cotangent or from a loss.

    What its steps need besides is of dtype ``needed`` if that is not empty.
    """
    net = network(writer, value, requires_grad=draw(st.sampled_from([True, True, False])))
    further = (i if i.domain in WHOLE else replace(i, dtype=needed) for i in net.arguments[len(given) or 1 :])
    inputs = (*(given or net.arguments[:1]), *further)
    cotangent = Input("v_y0", value.shape, dtype="" if result == dtype else result)
    main: tuple[Statement, ...] = (Backward((Ref("y"),), (Ref("v_y0"),)),)
    if draw(st.booleans()):
        product = Apply("p", Mul(), (Ref("y"), Ref("v_y0")))
        parts = (Apply("r", Real(), (Ref("p"),)),) if result in REAL else ()
        main = (product, *parts, Apply("loss", Sum(), (Ref("r" if parts else "p"),)), Backward((Ref("loss"),)))
    return topology(draw, net.module, (*inputs, cotangent), (net.call(), *main), dtype=dtype)
