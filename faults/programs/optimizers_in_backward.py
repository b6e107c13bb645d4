"""Faults in when optimizers step that are applied in backward or under a GradScaler."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from ..engine import Fault, replaced
from ..registering import edited
from .state_dict_hooks import Patch


def _applied(*changes: tuple[str, str]) -> Patch:
    """Edits what applies an optimizer in backward, where torch.distributed.optim offers it."""
    where = import_module("torch.distributed.optim.apply_optimizer_in_backward")
    offered = import_module("torch.distributed.optim")
    name = "_apply_optimizer_in_backward"
    with edited(where, name, *changes):
        changed = getattr(where, name)
    return replaced(offered, name, lambda original: changed)


def _unscaled_late(original: Any) -> Any:
    """A step under a scaler unscales when it is over."""

    def step(self: Any, optimizer: Any, *args: Any, **options: Any) -> Any:
        return optimizer.step()

    return step


FAULTS = (
    Fault(
        "optimizers in backward leave gradients",
        lambda: _applied(("param.grad = None", "pass")),
        ("OP-20",),
        (),
        "2.1",
    ),
    Fault(
        "of several optimizers in backward the last one steps",
        lambda: _applied(("in param._in_backward_optimizers:", "in param._in_backward_optimizers[-1:]:")),
        ("OP-20",),
        (),
        "2.1",
    ),
    Fault(
        "optimizers in backward step without being asked to",
        lambda: _applied(("if not register_hook", "if False")),
        ("OP-20",),
        (),
        "2.1",
    ),
    Fault(
        "of several optimizers in backward the handle of the last is kept",
        lambda: _applied(
            ("param_to_optim_hook_handle_map[param].append(handle)", "param_to_optim_hook_handle_map[param] = [handle]")
        ),
        ("OP-20",),
        (),
        "2.1",
    ),
    Fault(
        "a scaler steps on scaled gradients",
        lambda: replaced(torch.amp.GradScaler, "step", _unscaled_late),
        ("OP-21",),
        (),
        "2.3",
    ),
    Fault(
        "a scaler keeps the arguments of the step to itself",
        lambda: edited(
            torch.amp.GradScaler, "_maybe_opt_step", ("optimizer.step(*args, **kwargs)", "optimizer.step()")
        ),
        ("OP-21",),
        (),
        "2.3",
    ),
    Fault(
        "a scaler keeps what the step gives to itself",
        lambda: edited(torch.amp.GradScaler, "step", ("retval = self._maybe_opt_step", "self._maybe_opt_step")),
        ("OP-21",),
        (),
        "2.3",
    ),
    Fault(
        "a scaler keeps the arguments of a step to itself that unscales by itself",
        lambda: edited(torch.amp.GradScaler, "step", ("optimizer.step(*args, **kwargs_)", "optimizer.step()")),
        ("OP-21",),
        (),
        "2.13",
    ),
    Fault(
        "a scaler leaves its scale on an optimizer that unscales by itself",
        lambda: edited(torch.amp.GradScaler, "step", ("del optimizer.grad_scale", "pass")),
        ("OP-21",),
        (),
        "2.13",
    ),
    Fault(
        "a scaler that is not enabled keeps the arguments of the step to itself",
        lambda: edited(
            torch.amp.GradScaler, "step", ("return optimizer.step(*args, **kwargs)", "return optimizer.step()")
        ),
        ("OP-21",),
        (),
        "2.3",
    ),
)
