"""What did the script of a program say? The facts that it states, one a line, and how it ended."""

from __future__ import annotations

import ast
import re

from hookcheck.contract.finding import size
from hookcheck.repro.contrast import STATES
from hookcheck.repro.writing import NESTED, TENSOR


def facts_of(said: str, fact: str) -> list[str]:
    """The names of the facts that a script said ahead of one."""
    names = facts(said)
    return names[: names.index(fact)] if fact in names else []


def is_so(said: str, fact: str) -> bool:
    """Whether a script observed what it expects of a fact, each time."""
    ends = [line[len(fact) + len(STATES) :] for line in said.split("\n") if line.startswith(f"{fact}{STATES}")]
    halves = [end[: (len(end) - len(OBSERVED)) // 2] for end in ends]
    return all(end == f"{half}{OBSERVED}{half}" for end, half in zip(ends, halves))


OBSERVED = ", observed "
"""What stands between what a fact expects and what is so."""


def failing(said: str) -> str:
    """The name of the fact that a script ended with."""
    return (facts(said) or [""])[-1]


def facts(said: str) -> list[str]:
    """The names of all facts that a script said, in their order; torch may print lines of its own among them."""
    parts = (line.partition(STATES) for line in said.split("\n"))
    return [name for name, _, values in parts if OBSERVED in values]


def raised(said: str, fact: str) -> str:
    """The class of the exception that a script observed where the fact expects none; empty where there is none."""
    match = re.search(rf"(?m)^{re.escape(fact)}{STATES}None, observed (\w+): ", said)
    return match[1] if match else ""


def amount(said: str, fact: str) -> str:
    """How much a script observed of the fact that it ends with, beside what it expects: nothing, less, or not less.

    What is observed less of is another fault than what is observed too often, and where nothing is observed none may
    have been looked for. A script that states no such fact, or not in literals, gives an empty text.
    """
    expected, _, observed = said.rpartition(f"{fact}{STATES}")[2].partition("\n")[0].partition(OBSERVED)
    try:
        sides = [ast.literal_eval(side) for side in (expected, observed)]
    except (SyntaxError, ValueError):
        return ""
    due, seen = (side if isinstance(side, float) else size(side) for side in sides)  # a script makes numbers plain
    return "not less" if seen >= due else "less" if seen else "nothing"


def may_hide(text: str, expected: str, observed: str, plain: str) -> bool:
    """Whether a torch that does what is ``expected`` may give tensors that ``plain`` leaves, where this one gives none.

    A tensor is expected as the list of its numbers. What a program makes numbers of itself is none.
    """
    lists = {TENSOR: WITHIN, NESTED: OF_DICTS}.get(plain, LISTED)
    return bool(lists.search(expected)) and not re.search(r"\d", observed) and not UNPACKED.search(text)


LISTED = re.compile(r"[\[(][^\])]*-?\d")
WITHIN = re.compile(r"[\[({][^\])]*[\[(][^\])]*-?\d")
OF_DICTS = re.compile(r"\{[^}]*[\[(][^\])]*-?\d")
"""Numbers in a list or tuple, in one that is in another, in one that is in a dict."""

UNPACKED = re.compile(r"\.(?:tolist|item)\(|\bfloat\(")
"""What makes numbers of tensors."""


def last(said: str) -> str:
    """The last line that a script said."""
    return said.strip().split("\n")[-1]
