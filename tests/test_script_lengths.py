"""Is half of the scripts of networks as short as people ask for?

This file is collected after the tests that make the scripts, whose processes note the lengths in one folder.
"""

from __future__ import annotations

from statistics import median

import pytest
from repro.test_causes import lengths, one_an_entry

MEDIAN = 35
"""So many lines scripts of networks have at most in the middle."""

ENOUGH = 0.9
"""At least this part of them must be there: some are skipped, and another process may not be done with its last."""


@pytest.mark.slow
def test_half_of_them_are_shorter_than_people_ask_for(tmp_path_factory: pytest.TempPathFactory) -> None:
    texts = [file.read_text(encoding="utf-8") for file in lengths(tmp_path_factory).iterdir()]
    numbers = [int(text) for text in texts if text]
    if not numbers or len(numbers) < ENOUGH * len(one_an_entry()):
        pytest.skip("too few were made")
    assert median(numbers) <= MEDIAN, sorted(numbers)
