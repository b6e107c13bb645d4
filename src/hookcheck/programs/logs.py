"""How does what hooks noted differ from what they had to note? In one word, as the contract has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Entry = tuple[Any, ...]


def gap(expected: Sequence[Entry], observed: Sequence[Entry]) -> str:
    """The word for how two logs differ, which are not the same."""
    if any(entry[0] == "raised" and entry not in expected for entry in observed):
        return "raised"
    if any(entry[0] == "raised" and entry not in observed for entry in expected):
        return "not raised"
    if [entry[:1] for entry in (*expected, *observed)] == [("alive",)] * 2:
        return "kept alive"
    if len(expected) != len(observed):
        return "not fired" if len(observed) < len(expected) else "fired too often"
    return "wrong order" if sorted(map(str, expected)) == sorted(map(str, observed)) else "wrong arguments"
