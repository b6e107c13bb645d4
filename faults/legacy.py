"""Faults in what a legacy hook is called with, each of which has to show in every family, whatever the ledger knows."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch

from hookcheck.probe.copying import array_of

from .engine import LEGACY, Fault, Gradients, calling, each, receiving
from .firing import twice


def in_reverse(gradients: Gradients) -> Gradients:
    """The entries the other way round; of one alone, or of equal ones, the numbers."""
    if all(g is h or (g is not None and h is not None and _equal(g, h)) for g, h in zip(gradients, gradients[::-1])):
        return tuple(g if g is None else g.reshape(-1).flip(0).reshape(g.shape) for g in gradients)
    return gradients[::-1]


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two gradients have the same numbers, those of a batch of them too, which torch.equal refuses."""
    return np.array_equal(array_of(a), array_of(b))


def of_another_output() -> AbstractContextManager[None]:
    """The hook is given the latest gradient of the outputs before that is another, or that of one that nothing uses."""
    before: list[Any] = []

    def change(hook: Any, module: Any, gi: Gradients, go: Gradients) -> Any:
        present = [g for g in go if g is not None]
        others = (g for g in reversed(before) if not any(_equal(g, o) for o in present))
        given = next(others, None)
        before.extend(present)
        return hook(module, gi, tuple(map(torch.zeros_like, present)) if given is None else (given,))

    return calling(change)


IN_EVERY_FAMILY = (
    Fault("legacy: grad_input is tripled", lambda: receiving(each(lambda g: 3 * g)), ("P2-12",), LEGACY),
    Fault("legacy: grad_input comes in reverse", lambda: receiving(in_reverse), ("P2-12",), LEGACY),
    Fault(
        "legacy: grad_input is all sevens", lambda: receiving(each(lambda g: torch.full_like(g, 7))), ("P2-12",), LEGACY
    ),
    Fault("legacy: grad_input lacks an entry", lambda: receiving(lambda g: g[:-1]), ("P2-12",), LEGACY),
    Fault("legacy: the hook is called twice", twice, ("P2-12",), LEGACY),
    Fault("legacy: grad_output is that of another output", of_another_output, ("P2-12",), LEGACY),
)
"""Wrong in the numbers, their order, how many there are, how often the hook is called, and whose they are."""
