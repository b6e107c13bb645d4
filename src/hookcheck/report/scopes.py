"""Which hook kinds stand side by side? The legacy and the full backward hook of one scope; every other kind alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hookcheck.probe.kinds import KINDS

_PAIRS = (
    ("Backward hooks of a module", (("legacy", "backward"), ("full", "full_backward"))),
    ("Global backward hooks", (("legacy", "global_backward"), ("full", "global_full_backward"))),
)


@dataclass(frozen=True)
class Scope:
    """The hook kinds that one table shows; ``kinds`` are pairs of label and hook kind."""

    title: str
    kinds: tuple[tuple[str, str], ...]


def scopes(kinds: Iterable[str]) -> tuple[Scope, ...]:
    """The scopes that ``kinds`` fall into, those of the pairs first."""
    present = dict.fromkeys(kinds)
    paired = [
        Scope(title, tuple((label, kind) for label, kind in pair if kind in present))
        for title, pair in _PAIRS
        if any(kind in present for _, kind in pair)
    ]
    taken = {kind for scope in paired for _, kind in scope.kinds}
    return (*paired, *(Scope(_title(kind), ((kind, kind),)) for kind in present if kind not in taken))


def _title(kind: str) -> str:
    return f"Hook kind {kind}" if kind in KINDS else f"Programs: {kind.replace('-', ' ')}"
