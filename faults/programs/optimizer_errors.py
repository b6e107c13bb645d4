"""Faults in what becomes of step hooks where a step or a hook raises."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch.optim import SGD, Optimizer

from ..engine import Fault, replaced
from ..registering import edited
from .state_dict_hooks import Patch, registering

PRE = "register_step_pre_hook"


def _where_it_raises(act: Callable[[Any], None]) -> Patch:
    """Has ``act`` done with an optimizer whose step raises."""

    def make(original: Any) -> Any:
        def step(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return original(self, *args, **kwargs)
            except Exception:
                act(self)
                raise

        step.hooked = getattr(original, "hooked", False)  # type: ignore[attr-defined]
        return step

    torch.optim.SGD([torch.ones(1)], lr=1.0)  # the class is hooked by its first optimizer
    return replaced(SGD, "step", make)


def _calls_post_hooks(optimizer: Any) -> None:
    for hook in optimizer._optimizer_step_post_hooks.values():
        hook(optimizer, (), {})


def _passed_over(hook: Any) -> Any:
    """The hook, whose errors are not heard of."""

    def called(*arguments: Any) -> Any:
        with suppress(Exception):
            return hook(*arguments)

    return called


def _scaler(name: str, *changes: tuple[str, str]) -> Callable[[], Patch]:
    return lambda: edited(torch.amp.GradScaler, name, *changes)


TAKEN = "    retval = self._maybe_opt_step("

FAULTS = (
    Fault(
        "step post-hooks are called although the step raised",
        lambda: _where_it_raises(_calls_post_hooks),
        ("OP-23", "OP-24"),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "step post-hooks are lost where the step raises",
        lambda: _where_it_raises(lambda optimizer: optimizer._optimizer_step_post_hooks.clear()),
        ("OP-23", "OP-24"),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "the error of a step pre-hook is not heard of",
        lambda: registering(PRE, _passed_over, Optimizer),
        ("OP-24", "OP-25"),
        kinds=(),
        since="2.3",
    ),
    Fault(
        "a scaled step that raised counts as taken",
        _scaler("step", (TAKEN, f'    optimizer_state["stage"] = OptState.STEPPED\n{TAKEN}')),
        ("OP-25",),
        kinds=(),
        since="2.13",
    ),
    Fault(
        "GradScaler.update leaves gradients unscaled that are yet to come",
        _scaler("update", ("self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)", "pass")),
        ("OP-25",),
        kinds=(),
        since="2.13",
    ),
)
