"""Are the copies of what hooks receive read as the numbers that they hold?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hookcheck.probe.copying import copied
from hookcheck.probe.observation import numbers


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 3), (2, 0)])
def test_the_bits_of_bfloat16_are_read_as_an_array_of_the_same_shape(shape: tuple[int, ...]) -> None:
    value = torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape) - 1.25
    read = numbers(copied(value.to(torch.bfloat16)))
    assert isinstance(read, np.ndarray)
    np.testing.assert_array_equal(read, value.numpy(), strict=True)
