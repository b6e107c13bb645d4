"""Type promotion, against torch's own functions for it."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import pytest
import torch

from hookcheck.oracle.dtypes import FLOATING, promoted, result_dtype


def name(dtype: torch.dtype) -> str:
    return str(dtype).replace("torch.", "")


def kind(dtype: torch.dtype) -> str:
    """NumPy's letter for what the result of a step on such tensors is made of."""
    return "c" if dtype.is_complex else "f"


@pytest.mark.parametrize(("a", "b"), list(combinations_with_replacement(FLOATING, 2)))
def test_two_dtypes_promote_as_torch_promotes_them(a: str, b: str) -> None:
    wanted = name(torch.promote_types(getattr(torch, a), getattr(torch, b)))
    assert promoted((a, b)) == promoted((b, a)) == wanted


@pytest.mark.parametrize(("a", "b"), list(product(FLOATING, FLOATING)))
@pytest.mark.parametrize("ranks", [(0, 0), (0, 1), (1, 0), (2, 1)])
def test_the_result_of_tensors_with_and_without_dimensions(a: str, b: str, ranks: tuple[int, int]) -> None:
    left, right = (torch.ones((1,) * rank, dtype=getattr(torch, d)) for d, rank in zip((a, b), ranks))
    wanted = torch.result_type(left, right)
    if name(wanted) in FLOATING:
        assert (left * right).dtype == wanted
        assert result_dtype([(a, ranks[0]), (b, ranks[1])], kind(wanted)) == name(wanted)
    else:
        assert name(wanted) == "complex32"
        with pytest.raises(KeyError, match="float16"):
            result_dtype([(a, ranks[0]), (b, ranks[1])], kind(wanted))


@pytest.mark.parametrize("whole", ["int64", "bool"])
@pytest.mark.parametrize("dtype", FLOATING)
def test_integers_and_masks_do_not_count(whole: str, dtype: str) -> None:
    for ranks in product((0, 1), (0, 1)):
        wanted = torch.result_type(
            *(torch.ones((1,) * rank, dtype=getattr(torch, d)) for d, rank in zip((whole, dtype), ranks))
        )
        assert result_dtype([(whole, ranks[0]), (dtype, ranks[1])], kind(wanted)) == name(wanted)


@pytest.mark.parametrize(("complex_", "part"), [("complex64", "float32"), ("complex128", "float64")])
def test_parts_of_complex_numbers_are_of_the_real_dtype_and_back(complex_: str, part: str) -> None:
    assert name(torch.ones(1, dtype=getattr(torch, complex_)).abs().dtype) == part
    assert result_dtype([(complex_, 1)], "f") == part
    assert name(torch.complex(*[torch.ones(1, dtype=getattr(torch, part))] * 2).dtype) == complex_
    assert result_dtype([(part, 1)] * 2, "c") == complex_


@pytest.mark.parametrize(("letter", "dtype"), [("b", "bool"), ("i", "int64"), ("u", "int64")])
def test_what_is_not_floating_keeps_its_kind(letter: str, dtype: str) -> None:
    assert result_dtype([("float32", 1)], letter) == dtype


def test_three_dtypes_meet_in_the_one_that_holds_all() -> None:
    assert promoted(("float16", "bfloat16", "float16")) == "float32"
    assert promoted(("float16", "bfloat16", "float64")) == "float64"
    assert promoted(("complex64", "bfloat16", "float64")) == "complex128"
