"""mixed-dtype: tensors of several dtypes in one network, complex networks, and networks of 16 bits."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.catalogue import layer_classes, op_classes
from hookcheck.topology.families.drawing import WIDTHS, Draw, shapes
from hookcheck.topology.families.grammar import Value, Writer
from hookcheck.topology.families.networks import network, topology
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Apply, Backward, Input, Statement, Topology
from hookcheck.topology.ops import Add, Mul, Sum
from hookcheck.topology.ops.arithmetic import Maximum, Sub
from hookcheck.topology.ops.complex import Complex, Conj, Imag, Real, ViewAsReal
from hookcheck.topology.ops.moving import To
from hookcheck.topology.primitive import Op, Operand
from hookcheck.topology.tree import Ref

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
    "float64": ("float32", "bfloat16"),
    "float32": ("float64", "bfloat16", "float16"),
    "bfloat16": ("float32",),
    "float16": ("float32",),
}
"""What a network of one dtype casts to on its way."""

ANYWHERE = ("Tanh", "Sigmoid", "ReLU", "Identity", "Neg", "Scale", "Clone", "SumOver", "Transpose", "Unsqueeze")
"""Steps without parameters or further operands, which real tensors of every dtype go through."""


COMPLEX_STEPS = (
    "Tanh", "Linear", "Identity", "Dropout", "Conv1d", "Conv2d", "ConvTranspose1d", "Sigmoid", "Softsign", "Tanhshrink",
    "ConstantPad1d", "ZeroPad2d", "ReflectionPad1d", "Flatten", "Unflatten", "PixelShuffle", "Unfold",
    "Add", "Mul", "Sub", "Neg", "Scale", "MatMul", "SumOver", "Transpose", "Where", "Flip", "Reshape",
)  # fmt: skip
"""Steps that complex tensors go through."""

PARTS: tuple[Op, ...] = (Real(), Imag())
"""What takes a part of any complex tensor."""

REAL = {"complex128": "float64", "complex64": "float32"}
"""The dtype of the parts of a complex tensor."""


@st.composite
def topologies(draw: Draw) -> Topology:
    """A cast on the way; operands of two dtypes; a complex network; a complex part of a real one; 16 bits."""
    return draw(st.one_of(_cast(), _promoted(), _complex(), _complex_inside(), _of_16_bits()))


@st.composite
def _cast(draw: Draw) -> Topology:
    """A Linear, then steps in another dtype, at the root or in a module that casts; perhaps back and a Linear again."""
    dtype = draw(st.sampled_from(sorted(CASTS, reverse=True)))
    other = draw(st.sampled_from(CASTS[dtype]))
    writer = Writer(draw, draw(shapes()))
    (value,) = writer.step(writer.inputs[0], (Linear,))
    back = draw(st.booleans())
    target = Writer(draw, value.shape) if draw(st.booleans()) else writer
    (made,) = target.op(To(other), value if target is writer else target.inputs[0])
    made = steps(target, made, ANYWHERE)
    if back:
        (made,) = target.op(To(dtype), made)
    if target is not writer:
        made = Value(Ref(writer.inner(target, made.ref, value)), made.shape)
    if back and made.shape:
        (made,) = writer.step(made, (Linear,))
    return finished(draw, writer, made, dtype, dtype if back else other)


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
    (made,) = target.op(draw(st.sampled_from(ops)), *(both if target is writer else target.inputs))
    if target is not writer:
        made = Value(Ref(writer.inner(target, made.ref, *both)), made.shape)
    flags = draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    if beside in ("tensor", "scalar"):
        given = Input("x1", second.shape, flags[1], dtype=other)
    else:
        given = Input("x1", second.shape, domain=beside, below=4 if beside == "index" else 0)
    return finished(draw, writer, made, dtype, result, (Input("x0", shape, flags[0]), given))


@st.composite
def _complex(draw: Draw) -> Topology:
    """Complex parameters and inputs; a complex output, or a real one."""
    dtype = draw(st.sampled_from(["complex128", "complex64"]))
    writer = Writer(draw, draw(shapes()))
    (value,) = writer.step(writer.inputs[0], (Linear,))
    value = steps(writer, value, COMPLEX_STEPS)
    ways: tuple[Op, ...] = (*PARTS, ViewAsReal())
    if draw(st.integers(0, 3)) == 3:
        (value,) = writer.op(Conj(), value)
        ways = PARTS  # torch.view_as_real raises for what is conjugated only when its numbers are asked for
    if draw(st.booleans()):
        return finished(draw, writer, made_real(writer, value, ways), dtype, REAL[dtype])
    return finished(draw, writer, value, dtype, dtype)


@st.composite
def _complex_inside(draw: Draw) -> Topology:
    """Two real tensors become a complex one, which goes through steps at the root or in a module and becomes real."""
    shape = draw(shapes())
    writer = Writer(draw, shape)
    (real,) = writer.step(writer.inputs[0], (Linear,))
    imaginary = steps(writer, real, ("Tanh", "Sigmoid", "Neg"))
    value = Value(Ref(writer.named()), real.shape)
    writer.statements.append(Apply(value.ref.name, Complex(), (real.ref, imaginary.ref)))
    inner = Writer(draw, value.shape)
    made = steps(inner, inner.inputs[0], ("Tanh", "Identity", "Neg", "Scale", "Flatten", "Transpose", "SumOver"))
    made = Value(Ref(writer.inner(inner, made.ref, value)), made.shape)
    made = steps(writer, made_real(writer, made, (*PARTS, ViewAsReal())), ANYWHERE)
    dtype = draw(st.sampled_from(["float64", "float32"]))
    return finished(draw, writer, made, dtype, dtype)


@st.composite
def _of_16_bits(draw: Draw) -> Topology:
    """A small network of bfloat16 or float16."""
    dtype = draw(st.sampled_from(["bfloat16", "float16"]))
    writer = Writer(draw, draw(shapes()))
    (value,) = writer.step(writer.inputs[0], (Linear,))
    return finished(draw, writer, steps(writer, value, (*ANYWHERE, "Linear", "Add", "Mul")), dtype, dtype)


def steps(writer: Writer, value: Value, names: tuple[str, ...]) -> Value:
    """One or two of the steps of those names, on ``value``."""
    known = {**layer_classes(), **op_classes()}
    for _ in range(writer.draw(st.integers(1, 2))):
        kinds = tuple(known[name] for name in names if known[name].takes(value.shape))
        (value,) = writer.step(value, kinds)
    return value


def made_real(writer: Writer, value: Value, ways: tuple[Op, ...]) -> Value:
    """What one of the ``ways`` makes of a complex value: a part of it, or both."""
    ops = [op for op in ways if op.takes(value.shape)]
    return writer.op(writer.draw(st.sampled_from(ops)), value)[0]


def finished(
    draw: Draw, writer: Writer, value: Value, dtype: str, result: str, given: tuple[Input, ...] = ()
) -> Topology:
    """The network that gives ``value``, a tensor of dtype ``result``, and a backward by a cotangent or from a loss."""
    net = network(writer, value, requires_grad=draw(st.sampled_from([True, True, False])))
    inputs = (*(given or net.arguments[:1]), *net.arguments[len(given) or 1 :])
    cotangent = Input("v_y0", value.shape, dtype="" if result == dtype else result)
    main: tuple[Statement, ...] = (Backward((Ref("y"),), (Ref("v_y0"),)),)
    if draw(st.booleans()):
        product = Apply("p", Mul(), (Ref("y"), Ref("v_y0")))
        parts = (Apply("r", Real(), (Ref("p"),)),) if result in REAL else ()
        main = (product, *parts, Apply("loss", Sum(), (Ref("r" if parts else "p"),)), Backward((Ref("loss"),)))
    return topology(draw, net.module, (*inputs, cotangent), (net.call(), *main), dtype=dtype)
