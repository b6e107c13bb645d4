"""Faults in what is left where a hook raises in a module that is sharded, reduced, distributed or compiled."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from ..engine import Fault, replaced
from .sharded_steps import _module as of_fully_shard

Patch = AbstractContextManager[None]


def _loses(table: str) -> Patch:
    """A module whose call raises loses its hooks of that kind."""

    def make(original: Any) -> Any:
        def called(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return original(self, *args, **kwargs)
            except Exception:
                getattr(self, table).clear()
                raise

        return called

    return replaced(torch.nn.Module, "_call_impl", make)


def _goes_on() -> Patch:
    """A step whose predecessor did not end is not refused, and goes past what reduces."""

    def make(original: Any) -> Any:
        def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return original(self, *args, **kwargs)
            except RuntimeError as error:
                if "prior iteration" not in str(error):
                    raise
                self.reducer = None
                return self.module(*args, **kwargs)

        return forward

    return replaced(torch.nn.parallel.DistributedDataParallel, "forward", make)


EVER = ("SM-05", "DT-13", "DS-45", "DS-46")

FAULTS = (
    Fault("DistributedDataParallel goes on after a step that did not end", _goes_on, ("SM-04",), (), "2.13"),
    Fault("a module whose call raises loses forward hooks", lambda: _loses("_forward_hooks"), EVER, (), "2.13"),
    Fault(
        "a module whose call raises loses forward pre-hooks",
        lambda: _loses("_forward_pre_hooks"),
        ("DT-13", "DS-45"),
        (),
        "2.13",
    ),
    Fault(
        "fully_shard: reset_iter_state does nothing",
        lambda: of_fully_shard("reset_iter_state", ("state._reset_iter_state()", "pass")),
        ("DS-37", "DS-45"),
        (),
        "2.13",
    ),
)
