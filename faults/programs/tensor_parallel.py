"""Faults in what the tools of tensor parallelism do by hooks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module

from ..engine import Fault
from ..registering import edited

Patch = AbstractContextManager[None]


def _style(name: str, method: str, *changes: tuple[str, str]) -> Patch:
    """Edits a method of a style of ``parallelize_module``."""
    return edited(getattr(import_module("torch.distributed.tensor.parallel.style"), name), method, *changes)


def _resharding(name: str, *changes: tuple[str, str]) -> Patch:
    return edited(import_module("torch.distributed.tensor.parallel.input_reshard"), name, *changes)


def _loss(name: str, *changes: tuple[str, str]) -> Patch:
    return edited(import_module("torch.distributed.tensor.parallel.loss"), name, *changes)


LOCAL = "outputs.to_local() if use_local_output else outputs"

_FAULTS: tuple[tuple[str, Callable[[], Patch], str], ...] = (
    (
        "ColwiseParallel: parameters are thawed",
        partial(_style, "ColwiseParallel", "_partition_linear_fn", ("=param.requires_grad", "=True")),
        "DT-05",
    ),
    (
        "RowwiseParallel: the bias is thawed",
        partial(_style, "RowwiseParallel", "_partition_linear_fn", ("=module.bias.requires_grad", "=True")),
        "DT-05",
    ),
    *(
        (f"{style}: {what}", partial(_style, style, method, change), "DT-07")
        for style in ("ColwiseParallel", "RowwiseParallel")
        for what, method, change in (
            ("DTensors are not given, as asked", "_prepare_output_fn", (LOCAL, "outputs.to_local()")),
            (
                "the input is detached",
                "_prepare_input_fn",
                ("input_tensor = inputs[0]", "input_tensor = inputs[0].detach()"),
            ),
        )
    ),
    (
        "RowwiseParallel: the input is not turned",
        partial(_style, "RowwiseParallel", "_prepare_input_fn", ("if input_layouts != desired", "if not desired")),
        "DT-07",
    ),
    (
        "PrepareModuleInput: keywords are left as they are",
        partial(
            _style,
            "PrepareModuleInput",
            "_prepare_input_kwarg_fn",
            ("prepared_kwarg_inputs[kwarg_key] = self", "prepared_kwarg_inputs[kwarg_key] = kwarg_val; self"),
        ),
        "DT-08",
    ),
    (
        "PrepareModuleOutput: the first output alone is given",
        partial(_style, "PrepareModuleOutput", "_prepare_out_fn", ("if len(prepared_outputs) == 1:", "if True:")),
        "DT-08",
    ),
    (
        "SequenceParallel: a DTensor is left as it is",
        partial(
            _style,
            "SequenceParallel",
            "_prepare_input_fn",
            ("if input_tensor.placements != sequence", "if not sequence"),
        ),
        "DT-08",
    ),
    (
        "loss_parallel: the gradient of a cross entropy is that of its logarithms",
        partial(_loss, "_nll_loss_and_log_softmax_backward", ("torch.exp(x)", "0")),
        "DT-09",
    ),
    ("input_reshard: the hooks stay open", partial(_resharding, "input_reshard", ("cx.__exit__()", "pass")), "DT-11"),
    (
        "input_reshard: a shard comes back",
        partial(_resharding, "_unpack_hook_tp", ("placements=[Replicate()])", "placements=x.placements)")),
        "DT-11",
    ),
)

FAULTS = tuple(Fault(what, patch, tuple(clauses.split()), kinds=(), since="2.13") for what, patch, clauses in _FAULTS)
