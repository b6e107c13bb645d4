"""A statement of the support data in words; nothing is imported here that takes long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SCHEMA = 1
"""Number of the schema of the file (``support.schema.json`` beside this module)."""


def period(statement: Mapping[str, Any]) -> str:
    """The releases that a statement covers, and those that were run next to them, in words."""
    since, last = statement["since"], statement["last"]
    before, after = statement["otherwise_before"], statement["otherwise_after"]
    otherwise = f" (otherwise in {' and '.join(filter(None, [before, after]))})" if before or after else ""
    if not before and not after:
        return f"in all that was run, {since} to {last}"
    if not after:
        return f"since {since}{otherwise}"
    return f"{'in' if since == last else 'from'} {since}{'' if since == last else f' to {last}'}{otherwise}"
