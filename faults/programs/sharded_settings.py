"""Faults in what hooks see as fully_shard and FSDP are set."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module
from typing import Any

from ..engine import Fault, replaced
from ..registering import edited

Patch = AbstractContextManager[None]


def _edited(path: str, name: str, *changes: tuple[str, str]) -> Patch:
    """Edits a function of a module of torch.distributed, or a method of a class of it, whose name follows a colon."""
    module, _, owner = path.partition(":")
    place = import_module(f"torch.distributed.{module}")
    return edited(getattr(place, owner) if owner else place, name, *changes)


STATE, MODULE = "fsdp._fully_shard._fsdp_state:FSDPState", "fsdp._fully_shard._fully_shard:FSDPModule"
GROUPS = "fsdp._fully_shard._fsdp_state"
REPLICATE = "_composable.replicate"


def _cast_apart() -> Patch:
    """Has what is cast under fully_shard be no longer part of the graph."""

    def make(original: Any) -> Any:
        return lambda dtype, tensor: original(dtype, tensor).detach().requires_grad_(tensor.requires_grad)

    return replaced(import_module("torch.distributed.fsdp._fully_shard._fsdp_state"), "_cast_fp_tensor", make)


def _keywords_uncast() -> Patch:
    def make(original: Any) -> Any:
        return lambda dtype, *args, **kwargs: (original(dtype, *args)[0], kwargs)

    return replaced(import_module("torch.distributed.fsdp._runtime_utils"), "_cast_forward_inputs", make)


SYNC = "._no_sync = not requires_gradient_sync"

_FAULTS: tuple[tuple[str, Callable[[], Patch], str], ...] = (
    (
        "fully_shard: the root is resharded after forward",
        partial(_edited, STATE, "_lazy_init", ("if self._auto_reshard_after_forward:", "if False:")),
        "DS-38",
    ),
    *(
        (f"fully_shard: {method} does nothing", partial(_edited, MODULE, method, (change, "pass")), "DS-38")
        for method, change in (
            ("set_reshard_after_backward", "fsdp_param_group.reshard_after_backward = reshard_after_backward"),
            ("set_unshard_in_backward", "fsdp_param_group.unshard_in_backward = unshard_in_backward"),
        )
    ),
    (
        "fully_shard: inputs by keyword are not cast",
        partial(_edited, STATE, "_cast_forward_inputs", ("_apply_to_tensors(cast_fn, kwargs)", "kwargs")),
        "DS-39",
    ),
    (
        "fully_shard: outputs in containers are not cast",
        partial(
            _edited,
            STATE,
            "_cast_output_dtype",
            ("output_dtype is None:", "output_dtype is None or type(output) is dict:"),
        ),
        "DS-39",
    ),
    ("fully_shard: what is cast is detached", _cast_apart, "DS-39"),
    ("FullyShardedDataParallel: inputs by keyword are not cast", _keywords_uncast, "DS-39"),
    (
        "fully_shard: a group ends with its first module",
        partial(
            _edited,
            GROUPS,
            "_register_group_forward_hooks",
            ("modules_to_run.remove(module)\n", "modules_to_run.clear()\n"),
        ),
        "DS-40",
    ),
    (
        "fully_shard: a group begins with its last module",
        partial(
            _edited,
            GROUPS,
            "_register_group_forward_hooks",
            ("for module in modules\n    ]\n    post", "for module in modules[1:]\n    ]\n    post"),
        ),
        "DS-40",
    ),
    (
        "allreduce_hook: the gradient is not divided before",
        partial(
            _edited,
            "algorithms._comm_hooks.default_hooks",
            "allreduce_hook",
            ("grad.div_(state.gradient_predivide_factor)", "pass"),
        ),
        "DS-42",
    ),
    (
        "replicate: gradients are reduced in every step",
        partial(_edited, f"{REPLICATE}:DDP", "set_requires_gradient_sync", (SYNC, "._no_sync = False")),
        "DS-43",
    ),
    (
        "replicate: comm hooks are dropped",
        partial(
            _edited,
            f"{REPLICATE}:_ReplicateState",
            "register_comm_hook",
            ("self._ddp.register_comm_hook(*comm_args, **comm_kwargs)", "pass"),
        ),
        "DS-43",
    ),
    (
        "replicate: outputs do not start a backward",
        partial(
            _edited,
            f"{REPLICATE}:_ReplicateState",
            "forward_post_hook",
            ("return self._ddp._post_forward(output)", "return output"),
        ),
        "DS-43",
    ),
)

FAULTS = tuple(Fault(what, patch, tuple(clauses.split()), kinds=(), since="2.13") for what, patch, clauses in _FAULTS)
