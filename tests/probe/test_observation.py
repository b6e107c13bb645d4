"""Are the copies of what hooks receive read as the numbers that they hold?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hookcheck.probe.copying import copied, dtype_as_copied
from hookcheck.probe.observation import dtype_of, numbers


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 3), (2, 0)])
def test_the_bits_of_bfloat16_are_read_as_an_array_of_the_same_shape(shape: tuple[int, ...]) -> None:
    value = torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape) - 1.25
    read = numbers(copied(value.to(torch.bfloat16)))
    assert isinstance(read, np.ndarray)
    np.testing.assert_array_equal(read, value.numpy(), strict=True)


@pytest.mark.skipif(not hasattr(torch.Tensor, "resolve_neg"), reason="came with torch 1.10")
def test_numbers_that_are_conjugated_or_negated_when_they_are_asked_for_are_read() -> None:
    z = torch.tensor([1 + 2j, 3 - 4j], requires_grad=True).conj()
    assert z.is_conj()
    assert z.imag.is_neg()
    assert numbers(copied(z)).tolist() == [1 - 2j, 3 + 4j]
    assert numbers(copied(z.imag)).tolist() == [-2, 4]


@pytest.mark.parametrize("name", ["complex32", "float8_e4m3fn", "float8_e5m2"])
def test_numbers_of_dtypes_that_numpy_lacks_are_those_of_a_wider_one(name: str) -> None:
    wider = "complex64" if name == "complex32" else "float32"
    try:
        value = torch.tensor([0.5, -1.5], dtype=getattr(torch, wider)).to(getattr(torch, name))
    except (AttributeError, RuntimeError):
        pytest.skip("this torch lacks the dtype, or computes nothing with it")
    array = copied(value)
    assert dtype_of(array) == dtype_as_copied(value) == wider
    assert array.tolist() == [0.5, -1.5]
