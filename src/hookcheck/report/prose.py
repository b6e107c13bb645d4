"""Texts as they are shown: code in sentences, upstream issues as links, counts with their nouns, spans of releases."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import Markup, escape

_CODE = re.compile(r"``(.+?)``")
_ISSUE = re.compile(r"\b(pytorch|captum|opacus)#(\d+)\b")
_OWNERS = {"pytorch": "pytorch/pytorch", "captum": "meta-pytorch/captum", "opacus": "meta-pytorch/opacus"}


def prose(text: str) -> Markup:
    """``text`` with what stands between double backticks as code; everything else stays text."""
    parts = _CODE.split(" ".join(text.split()))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part) for number, part in enumerate(parts)
    )


def source(text: str) -> Markup:
    """``text`` with the upstream issues that it names as links."""
    flat = " ".join(text.split())
    shown, end = Markup(""), 0
    for match in _ISSUE.finditer(flat):
        address = f"https://github.com/{_OWNERS[match[1]]}/issues/{match[2]}"
        shown += escape(flat[end : match.start()]) + Markup('<a href="{}">{}</a>').format(address, match[0])
        end = match.end()
    return shown + escape(flat[end:])


def is_web_link(link: str) -> bool:
    """Whether ``link`` may be followed; a link of another scheme could run a script, and is shown as text."""
    return link.startswith(("https://", "http://"))


def many(count: int, noun: str, plural: str = "") -> str:
    """A count with its noun.

    >>> many(1, "case"), many(2000, "case")
    ('1 case', '2,000 cases')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def between(names: Sequence[str]) -> str:
    """The first and the last of ``names``, which are neighbours.

    >>> between(["2.15.0", "2.14.1", "2.13.0"]), between(["1.8.0"])
    ('2.15.0 to 2.13.0', '1.8.0')
    """
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def listed(names: Sequence[str], most: int, noun: str) -> str:
    """``names``, or the first of very many and how many there are; a single one is not left out.

    >>> listed(["a", "b", "c"], 2, "families"), listed(["a", "b", "c", "d"], 2, "families")
    ('a, b, c', 'a, b and 2 more families')
    """
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more {noun}"
