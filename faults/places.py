"""Faults in where hooks are called, and where the gradients lie that they are given."""

from __future__ import annotations

from contextlib import AbstractContextManager
from threading import Thread
from typing import Any

import torch

from .engine import ALL, Fault, Gradients, calling, receiving


class Elsewhere(torch.Tensor):
    """A tensor that says that it lies on another device."""

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return torch.device("cuda")


def elsewhere(gradients: Gradients) -> Gradients:
    return tuple(g.as_subclass(Elsewhere) if isinstance(g, torch.Tensor) else g for g in gradients)


def in_a_thread() -> AbstractContextManager[None]:
    def change(hook: Any, *arguments: Any) -> Any:
        answers: list[Any] = []
        thread = Thread(target=lambda: answers.append(hook(*arguments)))
        thread.start()
        thread.join()
        return answers[0]

    return calling(change)


PLACES = (
    Fault("hooks are called in a thread of their own", in_a_thread, ("PL-01",), ALL),
    Fault("gradients lie on another device", lambda: receiving(elsewhere, elsewhere), ("PL-01",), ALL),
)
