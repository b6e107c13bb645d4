"""hookcheck: a conformance and regression suite for PyTorch's hooks."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "assert_fires": "hookcheck.models.firing",
    "check_conversion": "hookcheck.models.conversion",
    "check_module": "hookcheck.models.check",
    "check_saved_tensors_hooks": "hookcheck.models.saved",
    "inventory": "hookcheck.models.conversion",
    "parametrize_with_clauses": "hookcheck.models.parametrize",
    "same_under": "hookcheck.models.same_under",
}
"""What is offered to other people's code, by the module that has it: imported when it is asked for."""


def __getattr__(name: str) -> Any:
    """What `_PUBLIC` names."""
    from importlib import import_module

    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
