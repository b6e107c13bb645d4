"""Faults in how the stages of a pipeline run."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import torch

from ..engine import Fault, release, replaced
from ..registering import edited

PIPELINES = "torch.distributed.pipelining"


def _asks_first(original: Any) -> Any:
    def stage_backward_input(outputs: Any, grads: Any, inputs: Any, weights: Any) -> Any:
        torch.autograd.grad(outputs, inputs, grads, retain_graph=True)
        return original(outputs, grads, inputs, weights)

    return stage_backward_input


def _past_hooks(original: Any) -> Any:
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.submod.forward(*args, **kwargs)

    return forward


FAULTS = (
    Fault(
        "pipelining: a stage calls its module past forward hooks",
        lambda: replaced(
            import_module(f"{PIPELINES}.stage")._PipelineStageBase, "forward_maybe_with_nosync", _past_hooks
        ),
        ("DD-16",),
        kinds=(),
        since="2.6",
    ),
    Fault(
        "pipelining: a split backward goes to the input twice",
        lambda: replaced(import_module(f"{PIPELINES}._backward"), "stage_backward_input", _asks_first),
        ("DD-17",),
        kinds=(),
        since="2.6",
    ),
    *(
        Fault(
            f"pipelining: a split backward forgets the gradients of {what}",
            partial(edited, import_module(f"{PIPELINES}._backward"), name, (f"{grad} +=", f"{grad} =")),
            ("DD-17",),
            kinds=(),
            since="2.13",
        )
        for what, name, grad in (
            ("inputs", "stage_backward_input", "inp.grad"),
            ("weights", "stage_backward_weight", "weight.grad"),
        )
        if torch.distributed.is_available() and release(torch.__version__) >= (2, 13)
    ),
)
