"""A badge: the verdict of one run in a picture of two halves, drawn without fonts or addresses of others."""

from __future__ import annotations

from html import escape

from hookcheck.record.model import Record, public_version
from hookcheck.report.summary import new_causes

GREEN, RED, GREY = "#2a7d34", "#b3261e", "#6b6b6b"
"""White text on each has a contrast of at least 4.5 to 1 (WCAG 2.2, 1.4.3)."""

_CHARACTER = 6.6
"""Pixels that a character of 11 pixels takes in Verdana on average; the text is fitted to what that comes to."""


def message(record: Record) -> tuple[str, str]:
    """The words and the colour of the right half."""
    torch = f"torch {public_version(record.header.torch.version)}"
    if not record.footer.complete:
        return f"{torch}: cut short", GREY
    new = len(new_causes(record))
    return (f"{torch}: {new} new deviation{'s' * (new != 1)}", RED) if new else (f"{torch}: as known", GREEN)


def svg(label: str, text: str, colour: str) -> str:
    """The picture; what it says is its title, for those who do not see it."""
    left, right = (round(len(half) * _CHARACTER) + 12 for half in (label, text))
    label, text = escape(label), escape(text)
    halves = "".join(
        f'<text x="{middle}" y="14" textLength="{length - 12}">{half}</text>'
        for middle, length, half in ((left / 2, left, label), (left + right / 2, right, text))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{label}: {text}"><title>{label}: {text}</title>'
        f'<rect width="{left}" height="20" fill="#444"/><rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">{halves}</g>'
        "</svg>\n"
    )
