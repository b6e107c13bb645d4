"""Operations on numbers small enough to work out by hand. ``v`` is the cotangent throughout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hookcheck.oracle.tolerance import assert_close
from hookcheck.topology.catalogue import op_classes
from hookcheck.topology.codec import decode, encode
from hookcheck.topology.families.fitting import MOST, placeholder
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Apply, Topology
from hookcheck.topology.ops import rule
from hookcheck.topology.ops.arithmetic import Add, Div, Maximum, Minimum, Mul, Sub, Where
from hookcheck.topology.ops.complex import Complex, Conj, Imag, Real, ViewAsReal
from hookcheck.topology.ops.contraction import Einsum, MatMul
from hookcheck.topology.ops.elementwise import Clamp, Pow, Scale, Shift
from hookcheck.topology.ops.functional import FunctionalGELU, FunctionalSoftmax
from hookcheck.topology.ops.inplace import AddInplace, ClampInplace, CopyInplace, IndexFillInplace, ZeroInplace
from hookcheck.topology.ops.joining import Cat, Chunk, Split, Stack
from hookcheck.topology.ops.moving import AdvancedIndex, Flip, Gather, MaskedFill, Roll, To, Tril
from hookcheck.topology.ops.reduction import (
    AMax,
    Cumsum,
    LogSumExp,
    Max,
    MaxOver,
    MeanOver,
    Norm,
    Prod,
    Sum,
    SumOver,
)
from hookcheck.topology.ops.tensors import AsDense, AsTensor
from hookcheck.topology.ops.views import Detach, Expand, Index, Narrow, Permute, Select, View
from hookcheck.topology.primitive import Op
from hookcheck.topology.tensors import TENSORS
from hookcheck.topology.tree import Ref

from .primitives import Step, with_cotangents
from .test_formulas import assert_forward, offered

OPS: list[Any] = list(op_classes().values())


class Weighted(rule.Broadcasting):
    """``a + number · b``."""

    def __init__(self, number: float) -> None:
        self.number = number

    @classmethod
    def _settings(cls, draw: st.DrawFn, shape: Any) -> tuple[Any, ...]:
        return (draw(st.sampled_from((0.5, 2.0))),)

    def value(self, a: Any, b: Any) -> Any:
        return a + self.number * b

    def pull(self, v: Any, a: Any, b: Any) -> Any:
        return v, self.number * v


@given(data=st.data())
def test_an_operation_on_two_tensors_draws_its_settings(data: st.DataObject) -> None:
    op, operands = data.draw(st.composite(Weighted.fitting)((2, 3)))
    assert isinstance(op, Weighted)
    assert op.number in (0.5, 2.0)
    assert len(operands) == 2


def forward(op: Op, *inputs: Any) -> list[Any]:
    return [y.tolist() for y in op.forward(tuple(map(np.asarray, inputs)), {})]


def vjp(op: Op, cotangents: Any, *inputs: Any) -> list[Any]:
    gradients, of_parameters = op.vjp(tuple(map(np.asarray, inputs)), {}, tuple(map(np.asarray, cotangents)))
    assert of_parameters == {}
    return [None if g is None else g.tolist() for g in gradients]


class TestBroadcasting:
    def test_a_gradient_is_summed_over_what_was_repeated(self) -> None:
        # (2, 1) + (3,) is (2, 3): a was repeated along the columns, b along the rows.
        v = [[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]
        assert vjp(Add(), [v], [[0.0], [0.0]], [0.0, 0.0, 0.0]) == [[[6.0], [60.0]], [11.0, 22.0, 33.0]]
        assert vjp(Sub(), [v], [[0.0], [0.0]], [0.0, 0.0, 0.0])[1] == [-11.0, -22.0, -33.0]

    def test_a_number_without_dimensions_gets_the_sum_over_everything(self) -> None:
        assert vjp(Mul(), [[1.0, 1.0]], [3.0, 4.0], 2.0) == [[2.0, 2.0], 7.0]

    def test_a_real_tensor_beside_a_complex_one_gets_the_real_part(self) -> None:
        # y = a b with b = i: conj(i) v = −i v, whose real part for v = 2 + 3i is 3.
        assert vjp(Mul(), [2 + 3j], 5.0, 1j) == [3.0, 10 + 15j]

    def test_a_side_of_0_is_kept(self) -> None:
        assert rule.unbroadcast(np.zeros((2, 0)), np.zeros((1, 0))).shape == (1, 0)
        assert vjp(Add(), [np.zeros((0, 2))], np.zeros((0, 2)), [1.0, 2.0]) == [[], [0.0, 0.0]]

    @given(data=st.data(), shape=st.lists(st.integers(0, 3), max_size=MOST).map(tuple))
    def test_companions_broadcast_and_stay_within_the_most_dimensions(
        self, data: st.DataObject, shape: tuple[int, ...]
    ) -> None:
        assert len(np.broadcast_shapes(shape, data.draw(st.composite(rule.companion)(shape)))) <= MOST
        within = data.draw(st.composite(rule.companion)(shape, grows=False))
        assert np.broadcast_shapes(shape, within) == shape


class TestArithmetic:
    def test_a_quotient(self) -> None:
        # a / b at 6 / 2: da = 1/2, db = −6/4.
        assert vjp(Div(), [1.0], 6.0, 2.0) == [0.5, -1.5]

    def test_the_larger_one_gets_the_cotangent_and_equal_ones_share_it(self) -> None:
        a, b, v = [1.0, 2.0, 3.0], [2.0, 2.0, 2.0], [8.0, 8.0, 8.0]
        assert vjp(Maximum(), [v], a, b) == [[0.0, 4.0, 8.0], [8.0, 4.0, 0.0]]
        assert vjp(Minimum(), [v], a, b) == [[8.0, 4.0, 0.0], [0.0, 4.0, 8.0]]

    def test_a_mask_takes_the_first_where_it_is_set_and_has_no_gradient(self) -> None:
        a, b, mask = [1.0, 2.0], [3.0, 4.0], [True, False]
        assert forward(Where(), a, b, mask) == [[1.0, 4.0]]
        assert vjp(Where(), [[5.0, 7.0]], a, b, mask) == [[5.0, 0.0], [0.0, 7.0], None]


class TestElementwise:
    def test_powers(self) -> None:
        # x³ at 2: 3·4; x⁰ is flat, at 0 too; x¹ at 0: 1.
        assert vjp(Pow(3), [1.0], 2.0) == [12.0]
        assert vjp(Pow(0), [[1.0, 1.0]], [2.0, 0.0]) == [[0.0, 0.0]]
        assert vjp(Pow(1), [1.0], 0.0) == [1.0]

    def test_a_clamp_may_have_one_bound(self) -> None:
        assert forward(Clamp(None, 0.5), [-9.0, 1.0]) == [[-9.0, 0.5]]
        assert vjp(Clamp(0.0, None), [[1.0, 1.0]], [-1.0, 9.0]) == [[0.0, 1.0]]

    def test_functions_have_the_formulas_of_layers(self) -> None:
        # gelu'(0) = Φ(0) = 1/2; a softmax of equal numbers is flat along the all-ones direction.
        assert vjp(FunctionalGELU(), [1.0], 0.0) == [0.5]
        assert vjp(FunctionalSoftmax(0), [[1.0, 1.0]], [3.0, 3.0]) == [[0.0, 0.0]]


class TestContractions:
    def test_vectors_stand_for_a_row_and_for_a_column(self) -> None:
        matrix, v = [[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0]
        # x A: dx = A v = (21, 43), dA[i, j] = x[i] v[j].
        assert vjp(MatMul(), [v], [5.0, 7.0], matrix) == [[21.0, 43.0], [[5.0, 50.0], [7.0, 70.0]]]
        # A x: dA[i, j] = v[i] x[j], dx = vᵀ A = (31, 42).
        assert vjp(MatMul(), [v], matrix, [5.0, 7.0]) == [[[5.0, 7.0], [50.0, 70.0]], [31.0, 42.0]]
        assert vjp(MatMul(), [2.0], [1.0, 3.0], [5.0, 7.0]) == [[10.0, 14.0], [2.0, 6.0]]

    def test_one_matrix_for_all_gathers_from_all(self) -> None:
        # y[n] = a[n] b with 1×1 matrices: db = Σ a[n] v[n] = 2·1 + 3·10.
        assert vjp(MatMul(), [[[[1.0]], [[10.0]]]], [[[2.0]], [[3.0]]], [[5.0]]) == [[[[5.0]], [[50.0]]], [[32.0]]]

    def test_a_letter_that_one_operand_has_alone_is_summed_first(self) -> None:
        # Σ_{a z} x[a] y[z] = (1 + 2)(10 + 20): each x meets 30, each y meets 3.
        op = Einsum("a,z->")
        assert forward(op, [1.0, 2.0], [10.0, 20.0]) == [90.0]
        assert vjp(op, [1.0], [1.0, 2.0], [10.0, 20.0]) == [[30.0, 30.0], [3.0, 3.0]]


class TestJoining:
    def test_pieces_of_the_cotangent(self) -> None:
        assert vjp(Cat(-1), [[[1.0, 2.0, 3.0]]], [[0.0]], [[0.0, 0.0]]) == [[[1.0]], [[2.0, 3.0]]]
        assert vjp(Stack(1), [[[1.0, 2.0], [3.0, 4.0]]], [0.0, 0.0], [0.0, 0.0]) == [[1.0, 3.0], [2.0, 4.0]]
        assert vjp(Split((1, 0, 2), 0), [[1.0], [], [2.0, 3.0]], [0.0, 0.0, 0.0]) == [[1.0, 2.0, 3.0]]

    @pytest.mark.parametrize(
        ("length", "count", "sizes"),
        [(5, 3, [2, 2, 1]), (4, 3, [2, 2]), (1, 2, [1]), (6, 2, [3, 3])],
    )
    def test_chunks_are_as_long_as_they_must_be_and_may_be_fewer(
        self, length: int, count: int, sizes: list[int]
    ) -> None:
        assert [len(y) for y in forward(Chunk(count, 0), np.zeros(length))] == sizes


class TestViews:
    def test_a_permutation_goes_back_by_its_inverse(self) -> None:
        v = np.arange(6.0).reshape(3, 1, 2)
        (dx,), _ = Permute((2, 0, 1)).vjp((np.zeros((1, 2, 3)),), {}, (v,))
        assert dx is not None
        assert dx.shape == (1, 2, 3)
        assert dx[0, 1, 2] == v[2, 0, 1]

    def test_an_expanded_number_gathers_from_every_repetition(self) -> None:
        assert vjp(Expand((2, 2)), [[[1.0, 2.0], [3.0, 4.0]]], [[0.0], [0.0]]) == [[[3.0], [7.0]]]

    def test_parts_get_their_place_back(self) -> None:
        x = [0.0, 0.0, 0.0, 0.0]
        assert vjp(Narrow(0, 1, 2), [[1.0, 2.0]], x) == [[0.0, 1.0, 2.0, 0.0]]
        assert vjp(Select(0, -1), [5.0], x) == [[0.0, 0.0, 0.0, 5.0]]
        assert vjp(Index(((1, None, 2),)), [[1.0, 2.0]], x) == [[0.0, 1.0, 0.0, 2.0]]

    def test_autograd_does_not_lead_through_a_detached_tensor(self) -> None:
        assert Detach().reaches((True,)) == (False,)


class TestCopies:
    def test_moves(self) -> None:
        assert forward(Roll((1,), (0,)), [1.0, 2.0, 3.0]) == [[3.0, 1.0, 2.0]]
        assert vjp(Roll((1,), (0,)), [[1.0, 2.0, 3.0]], [0.0, 0.0, 0.0]) == [[2.0, 3.0, 1.0]]
        assert forward(Flip((1,)), [[1.0, 2.0]]) == [[[2.0, 1.0]]]
        assert vjp(Tril(-1), [[[1.0, 2.0], [3.0, 4.0]]], [[0.0, 0.0], [0.0, 0.0]]) == [[[0.0, 0.0], [3.0, 0.0]]]
        assert vjp(MaskedFill(9.0), [[1.0, 2.0]], [0.0, 0.0], [False, True]) == [[1.0, 0.0], None]

    def test_what_is_read_twice_gathers_twice(self) -> None:
        # y = x[:, [[1, 1]]]: both cotangents go to x[0, 1].
        assert forward(Gather(1), [[1.0, 2.0]], [[1, 1]]) == [[[2.0, 2.0]]]
        assert vjp(Gather(1), [[[3.0, 4.0]]], [[1.0, 2.0]], [[1, 1]]) == [[[0.0, 7.0]], None]
        assert vjp(AdvancedIndex(), [[3.0, 4.0, 5.0]], [1.0, 2.0], [1, 0, 1]) == [[4.0, 8.0], None]

    def test_a_real_tensor_that_becomes_complex_gets_the_real_part(self) -> None:
        assert vjp(To("complex64"), [2 + 3j], 1.0) == [2.0]
        assert vjp(To("complex64"), [2 + 3j], 1j) == [2 + 3j]
        assert forward(To("bfloat16"), 1 + 2.0**-30) == [1 + 2.0**-30]

    @pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "complex64", "complex128"])
    def test_a_cast_is_to_the_dtype_that_it_says(self, dtype: str) -> None:
        op = To(dtype)
        assert op.casts == dtype
        assert eval(op.source("x"), {"torch": torch, "x": torch.ones(2)}).dtype == getattr(torch, dtype)


class TestReductions:
    def test_equal_largest_elements(self) -> None:
        # Over everything and in amax they share the cotangent; with an index the first gets it all.
        x = [[2.0, 1.0, 2.0]]
        assert vjp(Max(), [6.0], x) == [[[3.0, 0.0, 3.0]]]
        assert vjp(AMax((1,), False), [[6.0]], x) == [[[3.0, 0.0, 3.0]]]
        assert forward(MaxOver(1, False), x) == [[2.0], [0]]
        assert vjp(MaxOver(1, False), [[6.0], [0]], x) == [[[6.0, 0.0, 0.0]]]

    def test_over_some_dimensions(self) -> None:
        x = [[1.0, 2.0], [3.0, 4.0]]
        assert forward(SumOver((0,), True), x) == [[[4.0, 6.0]]]
        assert vjp(SumOver((0,), False), [[1.0, 10.0]], x) == [[[1.0, 10.0], [1.0, 10.0]]]
        assert vjp(MeanOver((0, 1), False), [8.0], x) == [[[2.0, 2.0], [2.0, 2.0]]]

    def test_a_product_with_a_zero(self) -> None:
        # Only the zero's own gradient is the product of others without a zero: 2·3.
        assert vjp(Prod(), [1.0], [2.0, 0.0, 3.0]) == [[0.0, 6.0, 0.0]]

    def test_norms(self) -> None:
        # (3, −4) has 2-norm 5 and 1-norm 7; at 0 the subgradient of least norm is 0.
        assert forward(Norm(1), [3.0, -4.0]) == [7.0]
        assert_close(vjp(Norm(2), [5.0], [3.0, -4.0])[0], [3.0, -4.0])
        assert vjp(Norm(1), [5.0], [3.0, -4.0]) == [[5.0, -5.0]]
        assert vjp(Norm(2), [5.0], [0.0, 0.0]) == [[0.0, 0.0]]

    def test_exponentials_do_not_overflow(self) -> None:
        assert forward(LogSumExp((0,), False), [1000.0, 0.0]) == [1000.0]
        assert vjp(LogSumExp((0,), False), [2.0], [1000.0, 0.0]) == [[2.0, 0.0]]

    def test_running_sums_gather_from_all_that_follow(self) -> None:
        assert vjp(Cumsum(0), [[1.0, 2.0, 3.0]], [0.0, 0.0, 0.0]) == [[6.0, 5.0, 3.0]]


class TestComplex:
    def test_parts_and_whole(self) -> None:
        # The gradient of z is that of its real part plus i times that of its imaginary part.
        assert vjp(Complex(), [2 + 3j], 0.0, 0.0) == [2.0, 3.0]
        assert vjp(Real(), [5.0], 1 + 1j) == [5 + 0j]
        assert vjp(Imag(), [5.0], 1 + 1j) == [5j]
        assert vjp(Conj(), [2 + 3j], 1 + 1j) == [2 - 3j]
        assert forward(ViewAsReal(), [1 + 2j]) == [[[1.0, 2.0]]]
        assert vjp(ViewAsReal(), [[[2.0, 3.0]]], [1 + 1j]) == [[2 + 3j]]

    @pytest.mark.parametrize("op", [Real(), Imag(), Conj(), ViewAsReal()])
    def test_torch_agrees_and_shares_the_memory(self, op: Op) -> None:
        if not offered(op.since):
            return
        z = np.array([[1 + 2j, 3 - 4j]])
        assert_forward(Step(op, (z,), {}, ()))
        tensor = torch.tensor(z)
        shown = eval(op.source("z"), {"torch": torch, "z": tensor})
        tensor.zero_()
        assert not shown.any()


class TestInPlace:
    def test_what_is_overwritten_has_no_gradient_left(self) -> None:
        assert vjp(ZeroInplace(), [[1.0, 2.0]], [3.0, 4.0]) == [[0.0, 0.0]]
        assert vjp(CopyInplace(), [[1.0, 2.0]], [3.0, 4.0], 5.0) == [[0.0, 0.0], 3.0]
        index_fill = IndexFillInplace(1, 9.0)
        assert forward(index_fill, [[1.0, 2.0]], [1, 1]) == [[[1.0, 9.0]]]
        assert vjp(index_fill, [[[1.0, 2.0]]], [[1.0, 2.0]], [1, 1]) == [[[1.0, 0.0]], None]

    @pytest.mark.parametrize("kind", [kind for kind in OPS if kind.writes is True], ids=lambda kind: kind.__name__)
    @settings(max_examples=20)
    @given(data=st.data(), shape=st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple))
    def test_the_shape_stays(self, kind: type[Op], data: st.DataObject, shape: tuple[int, ...]) -> None:
        op, operands = data.draw(fitted(kind, shape))
        (output,) = op.forward(tuple(map(placeholder, operands)), {})
        assert output.shape == shape


@st.composite
def fitted(draw: st.DrawFn, kind: type[Op], shape: tuple[int, ...]) -> Any:
    return kind.fitting(draw, shape)


REAL_ONES = [kind for kind in OPS if kind.__module__ != Real.__module__]


@pytest.mark.parametrize("kind", REAL_ONES, ids=lambda kind: kind.__name__)
@settings(max_examples=15)
@given(data=st.data(), shape=st.lists(st.integers(0, 2), max_size=3).map(lambda sides: (*sides, 0)))
def test_empty_tensors_where_they_are_taken(kind: type[Op], data: st.DataObject, shape: tuple[int, ...]) -> None:
    shape = tuple(data.draw(st.permutations(shape)))
    if kind.takes(shape):
        op, operands = data.draw(fitted(kind, shape))
        inputs = tuple(np.zeros(operand.shape, _DTYPES.get(operand.domain, float)) for operand in operands)
        if not op.casts:
            assert_forward(Step(op, inputs, {}, ()))
        gradients, _ = op.vjp(inputs, {}, with_cotangents(op, inputs, {}, 0).cotangents)
        assert [g.shape for g in gradients if g is not None] == [x.shape for x in inputs if x.dtype == float]


_DTYPES: dict[str, Any] = {"mask": bool, "index": np.int64}


def address(tensor: torch.Tensor) -> int:
    """Where a tensor's memory starts; torch has renamed its storage."""
    return getattr(tensor, "untyped_storage", tensor.storage)().data_ptr()


@pytest.mark.parametrize("kind", REAL_ONES, ids=lambda kind: kind.__name__)
@settings(max_examples=10)
@given(data=st.data())
def test_memory_is_shared_by_views_and_by_nothing_else(kind: type[Op], data: st.DataObject) -> None:
    op, operands = data.draw(fitted(kind, (2, 2, 3)))
    if op.casts or isinstance(op, AsDense) or not offered(op.since):
        return  # what is of the dtype, or is dense, is given as it is
    arrays = [np.zeros(operand.shape, _DTYPES.get(operand.domain, float)) for operand in operands]
    names: dict[str, Any] = {f"x{i}": torch.tensor(array) for i, array in enumerate(arrays)}
    result = eval(op.source(*names), {**names, "torch": torch, "nn": torch.nn})
    first = address(names["x0"])
    for output in result if isinstance(result, (tuple, list)) else [result]:
        assert (address(output) == first) is (op.views or op.writes)
    assert (result is names["x0"]) is op.writes


@pytest.mark.parametrize("name", [name for name, tensor_class in TENSORS.items() if tensor_class.read])
def test_what_is_read_from_a_tensor_of_a_class_has_memory_of_its_own(name: str) -> None:
    tensor_class = TENSORS[name]
    if not offered(tensor_class.since):
        return
    names: dict[str, Any] = {"torch": torch, "nn": torch.nn}
    exec(tensor_class.definitions, names)
    numbers = torch.arange(1.0, 5.0, dtype=getattr(torch, tensor_class.dtype or "float64")).reshape(2, 2)
    names["tensor"] = eval(AsTensor(name).source("x"), {**names, "x": numbers})
    read, again = (eval(AsDense(name).source("tensor"), names) for _ in range(2))
    assert read.tolist() == numbers.tolist()
    read.zero_()
    assert again.tolist() == eval(AsDense(name).source("tensor"), names).tolist() == numbers.tolist()


@pytest.mark.parametrize(
    ("op", "arguments", "text"),
    [
        (Add(), "a b", "a + b"),
        (Where(), "a b m", "torch.where(m, a, b)"),
        (Shift(-1.5), "x", "x + -1.5"),
        (Cat(1), "a b c", "torch.cat([a, b, c], 1)"),
        (Split((1, 2), -1), "x", "x.split([1, 2], -1)"),
        (View((-1, 2)), "x", "x.view(-1, 2)"),
        (Permute((1, 0)), "x", "x.permute(1, 0)"),
        (Index(((None, None, None), 0)), "x", "x[:, 0]"),
        (Index(((1, None, 2), (None, -1, None), -1)), "x", "x[1::2, :-1, -1]"),
        (AdvancedIndex(), "x i", "x[i]"),
        (SumOver((0, 2), True), "x", "x.sum([0, 2], True)"),
        (Einsum("ab,bz->az"), "a b", "torch.einsum('ab,bz->az', a, b)"),
        (To("float32"), "x", "x.to(torch.float32)"),
        (AddInplace(), "a b", "a.add_(b)"),
        (ClampInplace(0.0, None), "x", "x.clamp_(0.0, None)"),
    ],
)
def test_expressions(op: Op, arguments: str, text: str) -> None:
    assert op.source(*arguments.split()) == text


@pytest.mark.parametrize("op", [Index((0, (1, None, 2))), Clamp(None, 0.5), Split((1, 2), 0), Scale(2.0)])
def test_settings_survive_their_json(op: Op) -> None:
    topology = Topology(Linear(1, 1), (), (Apply("y", op, (Ref("x"),)),))
    assert decode(encode(topology)) == topology


def test_operations_without_settings_are_their_name_alone() -> None:
    assert encode(Add()) == {"type": "Add"}
    assert encode(Sum()) == {"type": "Sum"}
