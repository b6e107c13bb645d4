"""A hook of a kind as a script writes it: its parameters, and what it returns where it acts."""

from __future__ import annotations

from hookcheck.hooks import acts
from hookcheck.hooks.kinds import HookKind


def parameters(kind: HookKind) -> str:
    """What stands between the parentheses of a hook."""
    return ", ".join(kind.parameters)


def returned(kind: HookKind) -> str:
    """The expression that the first hook of a chain returns; empty where hooks look on. See `hookcheck.hooks.acts`."""
    return kind.acts.returned(f"{acts.FIRST}[i % {len(acts.FIRST)}]" if kind.acts.backward else str(acts.FORWARD[0]))


def returned_later(kind: HookKind) -> str:
    """The expression that a later hook of a chain returns, of ``factor``."""
    return kind.acts.returned("factor")


def later_factors(kind: HookKind) -> tuple[float, ...]:
    """What the later hooks of a chain scale by, in the order of their calls."""
    return acts.LATER if kind.acts.backward else acts.FORWARD[1:]
