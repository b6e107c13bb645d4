"""Faults in the comm hooks that torch has ready, and in what else runs by hooks of a bucket."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..engine import Fault
from ..registering import edited
from .state_dict_hooks import Patch

STEPPING = "optimizer_state.params_to_optimize is not None"


def _ready(module: str, name: str, *changes: tuple[str, str]) -> Patch:
    """Edits a function of a module of comm hooks, or a method of a class there."""
    owner, _, name = name.rpartition(".")
    where = import_module(f"torch.distributed.algorithms.ddp_comm_hooks.{module}")
    return edited(getattr(where, owner) if owner else where, name, *changes)


def _replicated(name: str, *changes: tuple[str, str]) -> Patch:
    """Edits a method of what ``replicate`` keeps of a module."""
    return edited(import_module("torch.distributed._composable.replicate")._ReplicateState, name, *changes)


EDITS: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
    (
        "fp16_compress_wrapper hands on all bits",
        lambda: _ready(
            "default_hooks", "fp16_compress_wrapper", ("bucket.set_buffer(bucket.buffer().to(torch.float16))", "pass")
        ),
        ("DD-13",),
    ),
    (
        "what is in 16 bits is not divided",
        lambda: _ready("default_hooks", "_compress_hook", (".div_(world_size)", "")),
        ("DD-19",),
    ),
    (
        "allreduce_hook gives the sum",
        lambda: _ready("default_hooks", "_allreduce_fut", ("tensor.div_(group_to_use.size())", "pass")),
        ("DD-19",),
    ),
    (
        "noop_hook gives zeros",
        lambda: _ready("debugging_hooks", "noop_hook", ("bucket.buffer()", "bucket.buffer() * 0")),
        ("DD-13",),
    ),
    (
        "the state of PowerSGD counts buckets",
        lambda: _ready("powerSGD_hook", "PowerSGDState.maybe_increase_iter", ("bucket.is_last()", "True")),
        ("DD-13",),
    ),
    (
        "local SGD starts late",
        lambda: _ready("post_localSGD_hook", "post_localSGD_hook", ("state.iter < state", "state.iter <= state")),
        ("DD-13",),
    ),
    (
        "PowerSGD starts with the first backward",
        lambda: _ready(
            "powerSGD_hook", "batched_powerSGD_hook", ("state.iter < state.start", "-state.iter > state.start")
        ),
        ("DD-12",),
    ),
    (
        "an optimizer steps all parameters",
        lambda: _ready("optimizer_overlap_hooks", "_hook_then_optimizer", (STEPPING, "False")),
        ("DD-15",),
    ),
    (
        "replicate drops keyword arguments",
        lambda: _replicated("forward_pre_hook", ("_pre_forward(*args, **kwargs)", "_pre_forward(*args)")),
        ("DD-14",),
    ),
    (
        "replicate reduces while it is to accumulate",
        lambda: _replicated("forward_pre_hook", ("not self._no_sync", "True")),
        ("DD-14",),
    ),
    (
        "replicate reduces what is to be ignored",
        lambda: _replicated(
            "_collect_params", ("if p not in ignored_params", "if True"), ("if module in ignored_modules", "if False")
        ),
        ("DD-14",),
    ),
    (
        "replicate loses its options",
        lambda: _replicated("record_init_args", ("= kwargs", "= {}")),
        ("DD-14",),
    ),
    (
        "replicate loses the keyword arguments of a comm hook",
        lambda: _replicated("register_comm_hook", ("(*comm_args, **comm_kwargs)", "(*comm_args)")),
        ("DD-14",),
    ),
    (
        "replicate loses a comm hook",
        lambda: _replicated("register_comm_hook", ("in self._comm_hook_args:", "in []:")),
        ("DD-14",),
    ),
)

FAULTS = tuple(Fault(what, patch, clauses, (), "2.13") for what, patch, clauses in EDITS)
