"""How does a layer's source line look? Its class, and its settings without those at their default."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any


def constructor(layer: Any, *usage: str) -> str:
    """The constructor call of a layer whose fields are named as torch names them.

    Fields without a default are positional; ``usage`` names the fields that are no arguments of the constructor, as
    ``unbatched`` never is.
    """
    shown = []
    for f in fields(layer):
        value = getattr(layer, f.name)
        if f.default is MISSING:
            shown.append(repr(value))
        elif value != f.default and f.name not in ("unbatched", *usage):
            shown.append(f"{f.name}={value!r}")
    return f"nn.{type(layer).__name__}({', '.join(shown)})"
