"""A class of the control's own, which has another forward than the network's."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hookcheck.repro.network import LONGEST

CONTROL = "Control"
"""The name of that class."""

_FORWARD = "    def forward("
_CONSTRUCTOR = "    def __init__(self):\n        super().__init__()\n"


def overriding(classes: Sequence[str], others: Sequence[str]) -> tuple[str, str] | None:
    """The name of the root's class, and a class that has in its place the forward of the one class in ``others``, or
    those of its children that are made otherwise.

    None where there are more of them, or more than that differs.
    """
    root = re.match(r"class (\w+)\(", classes[-1]) if classes else None
    if root is None or len(others) != 1:
        return None
    (head, forward, body), (other_head, _, other_body) = (text.partition(_FORWARD) for text in (classes[-1], others[0]))
    if not forward:
        return None
    changed = f"{forward}{other_body}" if head == other_head else ""
    if body == other_body:
        changed = _made_otherwise(head, other_head)
    return (root[1], f"class {CONTROL}({root[1]}):\n{changed}") if changed else None


def at_once(text: str) -> str | None:
    """The line that gives a net the forward of such a class, if it is short; None where it takes a class."""
    alone = re.fullmatch(rf"class {CONTROL}\(\w+\):\n{re.escape(_FORWARD)}self, ([^)]+)\):\n        return (.+)", text)
    line = alone and re.sub(r"\bself\.", "net.", f"net.forward = lambda {alone[1]}: {alone[2]}")
    return line if line and len(line) < LONGEST else None


def _made_otherwise(head: str, other: str) -> str:
    """A constructor that makes those children anew that are made otherwise; empty where more than that differs."""
    (before, constructor, children), (other_before, _, anew) = (text.partition(_CONSTRUCTOR) for text in (head, other))
    parts, others = children.rstrip("\n").split("\n"), anew.rstrip("\n").split("\n")
    apart = [(a, b) for a, b in zip(parts, others) if a != b]
    alike = before == other_before and constructor and len(parts) == len(others)
    replaced = all(re.match(r"        self\.\w+ = ", a) and _child(a) == _child(b) for a, b in apart)
    return "\n".join([_CONSTRUCTOR.rstrip("\n"), *(b for _, b in apart)]) if alike and apart and replaced else ""


def _child(line: str) -> str:
    return line.partition(" = ")[0]
