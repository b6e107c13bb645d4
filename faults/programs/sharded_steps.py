"""Faults in what fully_shard and FSDP do from step to step."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import is_dataclass
from functools import partial
from importlib import import_module
from typing import Any

from ..engine import Fault, replaced
from ..registering import edited

Patch = AbstractContextManager[None]


def _of_fully_shard(name: str) -> Any:
    """A module of fully_shard's code."""
    return import_module(f"torch.distributed.fsdp._fully_shard.{name}")


def _state(name: str, *changes: tuple[str, str]) -> Patch:
    """Edits a method of the state of a module under fully_shard."""
    return edited(_of_fully_shard("_fsdp_state").FSDPState, name, *changes)


def _group(name: str, *changes: tuple[str, str]) -> Patch:
    """Edits a method of a group of parameters under fully_shard."""
    return edited(_of_fully_shard("_fsdp_param_group").FSDPParamGroup, name, *changes)


def _module(name: str, *changes: tuple[str, str]) -> Patch:
    """Edits a method of a module under fully_shard."""
    return edited(_of_fully_shard("_fully_shard").FSDPModule, name, *changes)


def _parameter(name: str, *changes: tuple[str, str]) -> Patch:
    """Edits a method of a parameter under fully_shard."""
    return edited(_of_fully_shard("_fsdp_param").FSDPParam, name, *changes)


def _of_fsdp(name: str, *changes: tuple[str, str]) -> Patch:
    """Edits a function that FSDP's hooks call."""
    return edited(import_module("torch.distributed.fsdp._runtime_utils"), name, *changes)


def _outputs_are_missed(within: Callable[[Any], bool]) -> Patch:
    """Registers no hook on the tensors of what is held so."""

    def make(original: Any) -> Any:
        return lambda held: () if within(held) else original(held)

    return replaced(_of_fully_shard("_fsdp_state"), "collect_grad_tensors", make)


def _keywords_are_missed() -> Patch:
    return _group(
        "_register_post_backward_hook",
        ("collect_grad_tensors((args, kwargs))", "collect_grad_tensors((args, {}))"),
        (
            "replace_grad_tensors((args, kwargs), iter(out_tensors))",
            "(replace_grad_tensors(args, iter(out_tensors)), kwargs)",
        ),
    )


def _shard() -> Patch:
    added = "fsdp_param.sharded_param.grad._local_tensor += new_sharded_grad"
    replaced_by = "fsdp_param.sharded_param.grad = fsdp_param.to_sharded_dtensor(new_sharded_grad)"
    return edited(_of_fully_shard("_fsdp_param_group"), "foreach_reduce", (added, replaced_by))


REGISTERS = "output = self._register_pre_backward_hook(output)"
STARTS = "t.register_hook(self._pre_backward)"
UNCHANGED = "t.register_hook(lambda g, t=t, v=t._version: g if t._version != v else self._pre_backward(g))"
FINAL = "_root_post_backward_final_callback"


def _whole(name: str) -> Any:
    """FSDP's class, or a name of its module."""
    return getattr(import_module("torch.distributed.fsdp.fully_sharded_data_parallel"), name)


_OF_FULLY_SHARD = (
    (
        "outputs in dicts start no backward",
        lambda: _outputs_are_missed(lambda held: isinstance(held, dict)),
        "DS-29",
    ),
    ("outputs in dataclasses start no backward", lambda: _outputs_are_missed(is_dataclass), "DS-29"),
    (
        "outputs start no backward in evaluation",
        lambda: _state("_post_forward", (REGISTERS, f"{REGISTERS} if module.training else output")),
        "DS-29",
    ),
    (
        "the first output alone starts a backward",
        lambda: _state("_register_pre_backward_hook", ("for t in tensors:", "for t in tensors[:1]:")),
        "DS-29",
    ),
    (
        "an output that was changed in place starts no backward",
        lambda: _state("_register_pre_backward_hook", (STARTS, UNCHANGED)),
        "DS-44",
    ),
    (
        "nothing is gathered in a backward",
        lambda: _state("_pre_backward", ("fsdp_param_group.pre_backward(default_prefetch)", "pass")),
        "DS-29 DS-32 DS-41 DS-44",
    ),
    (
        "the parameters stay gathered after a backward",
        lambda: _group("post_backward", ("self.reshard()", "pass")),
        "DS-29",
    ),
    ("inputs by keyword do not end a backward", _keywords_are_missed, "DS-31"),
    ("a second gradient replaces the first", _shard, "DS-25 DS-32 DS-34"),
    (
        "a backward ends with no reduction where no input requires grad",
        lambda: _state(FINAL, ("fsdp_param_group.post_backward()", "pass")),
        "DS-32",
    ),
    (
        "a second backward gathers nothing",
        lambda: _group("finalize_backward", ("self._post_reduce_event = None", "self.unshard_in_backward = False")),
        "DS-32",
    ),
    (
        "what is not to be reduced is reduced",
        lambda: _module(
            "set_requires_gradient_sync", (".reduce_grads = requires_gradient_sync", ".reduce_grads = True")
        ),
        "DS-34",
    ),
    (
        "gradients that were not reduced are forgotten",
        lambda: _group(
            "post_backward", ("fsdp_param.to_accumulated_grad_if_needed()", "fsdp_param._unsharded_param.grad = None")
        ),
        "DS-34",
    ),
    (
        "of gradients in another dtype the last alone is reduced",
        lambda: _parameter("accumulate_unsharded_grad_if_needed", ("_grad += self", "_grad = self")),
        "DS-34",
    ),
    (
        "a parameter that is frozen or thawed stays what it was",
        lambda: replaced(
            _of_fully_shard("_fsdp_param"), "set_requires_grad_if_needed", lambda original: lambda *two: None
        ),
        "DS-36",
    ),
    (
        "reset_iter_state leaves the end of the backward queued",
        lambda: _state(
            "_reset_iter_state", (".post_backward_final_callback_queued = False", ".is_last_backward = True")
        ),
        "DS-37",
    ),
    (
        "reset_iter_state leaves the parameters gathered",
        lambda: _group("_reset_iter_state", ("self._to_sharded()", "pass")),
        "DS-37",
    ),
)

_OF_FSDP = (
    (
        "the first output alone starts a backward",
        partial(
            _of_fsdp,
            "_register_pre_backward_hooks",
            (
                "return _apply_to_tensors(_register_hook, outputs)",
                "return (_register_hook(outputs[0]), *outputs[1:]) if type(outputs) is tuple else outputs",
            ),
        ),
        "DS-30",
    ),
    (
        "outputs start no backward in evaluation",
        partial(
            _of_fsdp,
            "_register_pre_backward_hooks",
            ("if not torch.is_grad_enabled():", "if not torch.is_grad_enabled() or not module.training:"),
        ),
        "DS-30",
    ),
    (
        "the hook that reduces is registered once",
        partial(_of_fsdp, "_finalize_params", ('delattr(flat_param, "_post_backward_hook_state")', "pass")),
        "DS-33",
    ),
    (
        "the comm hook is called in no_sync",
        partial(_of_fsdp, "_post_backward_hook", ("if not state._sync_gradients:", "if False:")),
        "DS-35",
    ),
    (
        "no_sync stays after an exception",
        lambda: edited(_whole("FullyShardedDataParallel"), "no_sync", ("finally:", "except NotImplementedError:")),
        "DS-35",
    ),
)

FAULTS = (
    *(
        Fault(f"fully_shard: {what}", patch, tuple(clauses.split()), kinds=(), since="2.13")
        for what, patch, clauses in _OF_FULLY_SHARD
    ),
    *(
        Fault(f"FullyShardedDataParallel: {what}", patch, (clause,), kinds=(), since="2.13")
        for what, patch, clause in _OF_FSDP
    ),
)
