"""How every script begins: what it depends on, what it shows, and where it ends since its torch lacks the API."""

from __future__ import annotations

import textwrap

from hookcheck.repro.wrapping import WIDTH

LACKS = 3
"""The exit code of a script whose torch lacks the API, or whose machine lacks the device."""


def since_guard(since: str) -> list[str]:
    """The condition under which a torch is older than ``since``; none for the oldest release."""
    if release(since) <= (1, 7):
        return []
    return [f'tuple(map(int, torch.__version__.split(".")[:2])) < {release(since)}']


def release(version: str) -> tuple[int, int]:
    """Major and minor number of a version.

    >>> release("2.13.0")
    (2, 13)
    """
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def header(heading: str, where: str) -> str:
    """The first lines of a script: what it depends on, what it shows, and where the promise stands."""
    said = textwrap.shorten(heading, WIDTH - len('""".""" '), placeholder=" …")
    said += "" if said.endswith("…") else "."
    links = [f"# {where}"] if where and len(where) < WIDTH - 2 else []
    return "\n".join(["# /// script", '# dependencies = ["torch"]', "# ///", f'"""{said}"""', *links])
