"""Is half of the scripts of networks as short as people ask for?

This file is collected after the tests that make the scripts, whose processes note the lengths in one folder.
"""

from __future__ import annotations

from statistics import median

import pytest
from repro.test_causes import lengths

MEDIAN = 35
"""So many lines scripts of networks have at most in the middle."""

ENOUGH = 8
"""So many must be there at least, or their middle says nothing of the others."""


@pytest.mark.slow
def test_half_of_them_are_shorter_than_people_ask_for(tmp_path_factory: pytest.TempPathFactory) -> None:
    texts = [file.read_text(encoding="utf-8") for file in lengths(tmp_path_factory).iterdir()]
    numbers = [int(text) for text in texts if text]
    if len(numbers) < ENOUGH:
        pytest.skip("too few were made")
    assert median(numbers) <= MEDIAN, sorted(numbers)
