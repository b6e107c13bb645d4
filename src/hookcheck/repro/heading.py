"""How every script begins and ends: what it depends on, what it shows, and its exit codes."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from hookcheck.releases.numbers import release
from hookcheck.repro.formatting import WIDTH

LACKS = 3
"""The exit code of a script whose torch lacks the API, or whose machine lacks the device."""

LONGEST = 60
"""So many lines a script has at most."""

TOO_LONG = f"no control: with one the script would pass {LONGEST} lines"
"""What a script says that has none since it would be too long."""

FAILS = 2
"""The exit code of a script whose control fails: then its experiment says nothing."""


def ending(experiment: str, control: str = "") -> list[str]:
    """The last lines of a script, by the condition under which its ``experiment`` holds, and its ``control`` if any."""
    ends = f"0 if {experiment} else 1"
    if not control:
        return [f"raise SystemExit({ends})"]
    fails = _negated(control)
    line = f"raise SystemExit({FAILS} if {fails} else {ends})"
    if len(line) <= WIDTH:
        return [f"# 0: as documented, 1: the fault shows, {FAILS}: the control fails", line]
    return [f"if {fails}:", f"    raise SystemExit({FAILS})  # the control fails", f"raise SystemExit({ends})"]


def ends_with(script: str, code: int) -> bool:
    """Whether a script has an end with that exit code.

    >>> ends_with(ending("experiment == 1", "control == 1")[-1], FAILS)
    True
    """
    return bool(re.search(rf"SystemExit\(\s*{code}\b|else {code}\s*\)", script))


def _negated(condition: str) -> str:
    several = re.search(r" (?:and|or) ", condition)
    for holds, not_so in ((" == ", " != "), (" is None", " is not None"), (" in ", " not in ")):
        if condition.count(holds) == 1 and not several:
            return condition.replace(holds, not_so)
    if several:
        return f"not ({condition})"
    return condition[len("not ") :] if condition.startswith("not ") else f"not {condition}"


def since_guard(since: str) -> list[str]:
    """The condition under which a torch is older than ``since``; none for the oldest release."""
    if release(since) <= (1, 7):
        return []
    return [f'tuple(map(int, torch.__version__.split(".")[:2])) < {release(since)}']


def header(headings: Sequence[str], where: str, lines: int = 2) -> str:
    """The first lines of a script: what it depends on, what it shows, and where the promise stands.

    Of the ``headings``, each briefer than the one before, that is taken which fits on a line; else, on so many
    ``lines``, the first that was not cut off.
    """
    room = WIDTH - len('""".""" ')
    whole = (heading for heading in headings if not heading.endswith("…"))
    heading = next((heading for heading in headings if len(heading) <= room), next(whole, headings[0]))
    said = "\n".join(textwrap.wrap(heading, room, max_lines=lines, placeholder=" …"))
    said += "" if said.endswith("…") else "."
    links = [f"# {where}"] if where and len(where) < WIDTH - 2 else []
    return "\n".join(["# /// script", '# dependencies = ["torch"]', "# ///", f'"""{said}"""', *links])
