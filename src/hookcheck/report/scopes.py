"""Which hook kinds stand side by side? Those that promise alike; chapters of programs stand alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hookcheck.hooks.kinds import KINDS

_PAIRS = (
    ("Backward hooks of a module", (("legacy", "backward"), ("full", "full_backward"))),
    ("Global backward hooks", (("legacy", "global_backward"), ("full", "global_full_backward"))),
    ("Backward pre-hooks", (("module", "full_backward_pre"), ("global", "global_full_backward_pre"))),
    (
        "Forward pre-hooks",
        (("module", "forward_pre"), ("with kwargs", "forward_pre_kwargs"), ("global", "global_forward_pre")),
    ),
    ("Forward hooks", (("module", "forward"), ("with kwargs", "forward_kwargs"), ("global", "global_forward"))),
    (
        "Hooks on tensors",
        (
            ("leaf", "tensor"),
            ("accumulated", "post_accumulate"),
            ("all leaves", "multi_grad"),
            ("output", "output_tensor"),
            ("retained", "output_retain_grad"),
        ),
    ),
    (
        "Hooks in the graph",
        (("Node", "output_node"), ("before the Node", "output_node_pre"), ("saved tensors", "saved_tensors")),
    ),
    (
        "Hooks that act",
        (
            ("full backward", "acting_full_backward"),
            ("backward pre", "acting_full_backward_pre"),
            ("forward pre", "acting_forward_pre"),
            ("forward", "acting_forward"),
        ),
    ),
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


def is_chapter(scope: Scope) -> bool:
    """Whether it is a chapter of programs."""
    return all(kind not in KINDS for _, kind in scope.kinds)


def _title(kind: str) -> str:
    return f"Hook kind {kind}" if kind in KINDS else f"Programs: {kind.replace('-', ' ')}"
