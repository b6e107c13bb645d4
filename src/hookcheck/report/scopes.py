"""Which hook kinds stand side by side? Those that promise alike; chapters of programs stand alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
class TableScope:
    """The hook kinds that one table shows; ``kinds`` are pairs of label and hook kind."""

    title: str
    kinds: tuple[tuple[str, str], ...]


def scopes(kinds: Iterable[str]) -> tuple[TableScope, ...]:
    """The scopes that ``kinds`` fall into, those of the pairs first."""
    present = dict.fromkeys(kinds)
    paired = [
        TableScope(title, tuple((label, kind) for label, kind in pair if kind in present))
        for title, pair in _PAIRS
        if any(kind in present for _, kind in pair)
    ]
    taken = {kind for scope in paired for _, kind in scope.kinds}
    return (*paired, *(TableScope(_title(kind), ((kind, kind),)) for kind in present if kind not in taken))


def is_chapter(scope: TableScope) -> bool:
    """Whether it is a chapter of programs."""
    return all(kind not in KINDS for _, kind in scope.kinds)


def _title(kind: str) -> str:
    return f"Hook kind {kind}" if kind in KINDS else f"Programs: {kind.replace('-', ' ')}"


TITLES: Mapping[str, str] = {
    "backward": "Legacy backward hooks",
    "full_backward": "Full backward hooks",
    "global_backward": "Global legacy backward hooks",
    "global_full_backward": "Global full backward hooks",
    "full_backward_pre": "Full backward pre-hooks",
    "global_full_backward_pre": "Global full backward pre-hooks",
    "forward_pre": "Forward pre-hooks",
    "forward": "Forward hooks",
    "forward_pre_kwargs": "Forward pre-hooks with keyword arguments",
    "forward_kwargs": "Forward hooks with keyword arguments",
    "global_forward_pre": "Global forward pre-hooks",
    "global_forward": "Global forward hooks",
    "tensor": "Hooks on leaf tensors",
    "post_accumulate": "Post-accumulate hooks",
    "multi_grad": "Multi-grad hooks",
    "output_tensor": "Hooks on output tensors",
    "output_retain_grad": "Retained gradients of outputs",
    "output_node": "Hooks on the Nodes of outputs",
    "output_node_pre": "Pre-hooks on the Nodes of outputs",
    "saved_tensors": "Saved-tensors hooks",
    "acting_full_backward": "Full backward hooks that change gradients",
    "acting_full_backward_pre": "Full backward pre-hooks that change gradients",
    "acting_forward_pre": "Forward pre-hooks that change arguments",
    "acting_forward": "Forward hooks that change outputs",
}
"""What people call the hook kinds."""

_CHAPTERS: Mapping[str, tuple[str, ...]] = {
    "backward": ("legacy-backward-hooks",),
    "full_backward": (
        "full-backward-hooks", "backward-hook-firing", "backward-hook-structures", "backward-hook-results",
        "backward-hook-lifetimes",
    ),
    "global_full_backward": ("global-backward-hooks",),
    "full_backward_pre": ("full-backward-pre-hooks",),
    "acting_full_backward": ("acting-backward-hooks",),
    "forward": ("forward-hooks", "always-call"),
    "forward_pre": ("forward-pre-hooks",),
    "global_forward": ("global-hooks",),
    "tensor": ("tensor-hooks", "tensor-hooks-in-place", "parameter-hooks", "accumulate-grad"),
    "post_accumulate": ("post-accumulate-hooks",),
    "multi_grad": ("multi-grad-hooks",),
    "output_node": ("node-hooks", "node-creation-hooks"),
    "saved_tensors": (
        "saved-tensors-hooks", "saved-tensors-memory", "saved-tensor-mutation", "saved-tensor-registration",
    ),
}  # fmt: skip
"""The chapters of programs whose readers look for a hook kind; a chapter that is missing here stands by itself."""


def title(kind: str) -> str:
    """What people call a hook kind, or a chapter of programs.

    >>> title("full_backward"), title("torch-func")
    ('Full backward hooks', 'Programs: torch func')
    """
    return TITLES.get(kind) or _title(kind)


def chapters(kind: str) -> tuple[str, ...]:
    """The chapters of programs about a hook kind."""
    return _CHAPTERS.get(kind, ())
