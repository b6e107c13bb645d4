"""What stands for what became of a promise: one sign with one word and one colour for each cost to the hook's user.

A sign says the consequence, not only that something deviates: a wrong value that nobody is told of is no new warning.
Colour never carries meaning alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hookcheck.contract.verdict import COST_CLASSES


@dataclass(frozen=True)
class Sign:
    """``style`` is a CSS class; ``letter`` stands for the sign where a script reads it; ``counted`` is what follows
    a number of promises, where ``word`` does not."""

    symbol: str
    word: str
    meaning: str
    style: str
    letter: str
    counted: str = ""


CRASH = Sign("‼", "ended", "a case ended the process or took too long", "crash", "c")
SILENT = Sign("✗", "silently wrong", "a hook gets a wrong value, and nothing says so", "silent", "s")
UNCALLED = Sign("∅", "not called", "a hook that is due is not called", "uncalled", "n")
OTHERWISE = Sign("↻", "called otherwise", "too often, in another order or with other arguments", "otherwise", "o")
ERROR = Sign("!", "raises", "an exception, or none where one is due", "error", "e", "with an exception")
WARNING = Sign("△", "warns", "a warning, or none where one is due", "warning", "w", "with a warning")
MEMORY = Sign("▤", "memory", "something is kept alive", "memory", "m", "with something kept alive")
ROUNDING = Sign("≈", "rounding", "right but for the last digits", "rounding", "r", "with other rounding")
REFUTED = Sign("✗", "refuted", "torch does otherwise than is claimed", "silent", "f")
PARTLY = Sign("◐", "partly", "torch does otherwise than is claimed in some of it", "warning", "p", "true in part")
HOLDS = Sign("✓", "holds", "everything that was judged is as promised", "holds", "h")
SHOWN = Sign("◦", "not promised", "no release promises it: what happens is shown, and not judged", "none", "x")
UNRUN = Sign("–", "not run", "not run, or nothing to judge; this is no pass", "none", "u")
ABSENT = Sign("·", "not offered", "this torch lacks it", "none", "a")

SIGNS = (
    *(CRASH, SILENT, UNCALLED, OTHERWISE, ERROR, WARNING, MEMORY, ROUNDING),
    *(REFUTED, PARTLY, HOLDS, SHOWN, UNRUN, ABSENT),
)
"""All signs, the one that asks for most attention first."""

BY_COST: Mapping[str, Sign] = dict(zip(COST_CLASSES, (SILENT, UNCALLED, OTHERWISE, ERROR, WARNING, MEMORY, ROUNDING)))
"""The sign of each class of cost; a test holds the two in step."""

WRONG = (CRASH, *BY_COST.values(), REFUTED, PARTLY)
"""The signs of what is not as it is promised or claimed."""

SILENCE = (UNRUN, ABSENT)
"""The signs of what nothing is said about."""
