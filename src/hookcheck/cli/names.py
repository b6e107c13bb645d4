"""Names that a user gives: one that is unknown is refused, with those that are near it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from hookcheck.errors import HookcheckError

FEW = 30
"""Up to so many names are all told where none is near."""


def one_of(name: str, known: Iterable[str], what: str) -> str:
    """``name``, which is one of ``known``.

    Raises:
        HookcheckError: it is none; the message names those that are near it, or all, or the first of many.
    """
    names = list(known)
    if name in names:
        return name
    near = nearest(name, names)
    if len(names) > FEW:
        names = [*names[:FEW], f"{len(names) - FEW} more"]
    hint = f"did you mean {listed(near)}?" if near else f"choose from {listed(names)}"
    raise HookcheckError(f"unknown {what} {name!r}; {hint}")


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The names of ``known`` that ``name`` may have been meant for, the nearest first: alike, or with it in them. Of an
    id of letters and a number they are those of the same letters, if there are any."""
    by_lower = {each.lower(): each for each in known}
    letters, _, number = name.lower().rpartition("-")
    if letters and number.isdigit():
        alike = [each for each in by_lower if re.fullmatch(rf"{re.escape(letters)}-\d+", each)]
        if alike:
            apart = {each: abs(int(each.rpartition("-")[2]) - int(number)) for each in alike}
            return [by_lower[each] for each in sorted(alike, key=apart.__getitem__)][:4]
    alike = get_close_matches(name.lower(), by_lower, n=4, cutoff=0.6)
    holding = [each for each in by_lower if name.lower() in each] if len(name) > 2 else []
    return [by_lower[each] for each in dict.fromkeys([*alike, *holding])][:4]


def listed(names: list[str]) -> str:
    """Names as a list, with ``or`` before the last.

    >>> listed(["view", "nested", "residual"])
    'view, nested or residual'
    """
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
