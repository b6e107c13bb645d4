"""Faults in how FSDP and fully_shard work by hooks."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module
from typing import Any

import torch

from ..engine import Fault, replaced
from ..registering import edited

Patch = AbstractContextManager[None]

PREDIVIDED = "_div_if_needed(padded_unsharded_grad, state._gradient_predivide_factor)"


def _in_the_other_place(name: str) -> Patch:
    """Has fully_shard's own hook be put where it must not be, of the kind that ``name`` registers."""

    def make(original: Any) -> Any:
        def register(self: Any, hook: Any, prepend: bool = False, **options: Any) -> Any:
            of_fsdp = "_fully_shard" in getattr(hook, "__module__", "")
            return original(self, hook, prepend=prepend is not of_fsdp, **options)

        return register

    return replaced(torch.nn.Module, name, make)


def _own_hook_is_missing(name: str) -> Patch:
    """Has fully_shard's own hook be missing, of the kind on state dicts that ``name`` registers."""

    def make(original: Any) -> Any:
        def register(self: Any, hook: Any, *args: Any, **options: Any) -> Any:
            of_fsdp = "_fully_shard" in getattr(hook, "__module__", "")
            return original(self, (lambda *_: None) if of_fsdp else hook, *args, **options)

        return register

    return replaced(torch.nn.Module, name, make)


def _without_hooks_of_shards() -> Patch:
    """Has what sets the gradient of a shard not see its hooks."""

    def make(original: Any) -> Any:
        def reduce(params: Any, *args: Any, **options: Any) -> Any:
            hooks = [getattr(each.sharded_param, HOOKS) for each in params]
            for each in params:
                setattr(each.sharded_param, HOOKS, None)
            try:
                return original(params, *args, **options)
            finally:
                for each, there in zip(params, hooks):
                    setattr(each.sharded_param, HOOKS, there)

        return reduce

    return replaced(import_module("torch.distributed.fsdp._fully_shard._fsdp_param_group"), "foreach_reduce", make)


def _calling_hooks_twice() -> Patch:
    """Has FSDP call the hooks of each parameter twice when it has written the gradients."""

    def make(original: Any) -> Any:
        def prepare(self: Any) -> None:
            original(self)
            for weight in self.flat_param._params:
                for table, given in (("_backward_hooks", weight.grad), (HOOKS, weight)):
                    for hook in 2 * [*(getattr(weight, table, None) or {}).values()]:
                        hook(given)

        return prepare

    return replaced(_flat_param(), "prepare_gradient_for_optim", make)


HOOKS = "_post_accumulate_grad_hooks"


def _flat_param() -> Any:
    return import_module("torch.distributed.fsdp._flat_param").FlatParamHandle


def _fsdp() -> Any:
    return import_module("torch.distributed.fsdp").FullyShardedDataParallel


FAULTS = (
    Fault(
        "FullyShardedDataParallel: comm hooks are dropped",
        lambda: replaced(_fsdp(), "register_comm_hook", lambda original: lambda self, state, hook: None),
        ("DS-09",),
        kinds=(),
    ),
    Fault(
        "FullyShardedDataParallel: what it gives is detached",
        lambda: replaced(
            _fsdp(), "forward", lambda original: lambda self, *args, **kwargs: original(self, *args, **kwargs).detach()
        ),
        ("DS-10", "DS-28"),
        kinds=(),
    ),
    Fault(
        "FullyShardedDataParallel: hooks of a parameter are called twice",
        _calling_hooks_twice,
        ("DS-28",),
        kinds=(),
        since="2.3",
    ),
    Fault(
        "FullyShardedDataParallel: gradients are not handed on to the parameters",
        lambda: replaced(_flat_param(), "_use_sharded_grad_views", lambda original: lambda self: None),
        ("DS-28",),
        kinds=(),
        since="2.3",
    ),
    Fault(
        "fully_shard: parameters are not freed after forward",
        lambda: replaced(
            import_module("torch.distributed.fsdp._fully_shard._fsdp_state").FSDPState,
            "_post_forward",
            lambda original: lambda self, module, args, output: output,
        ),
        ("DS-11", "DS-12"),
        kinds=(),
        since="2.7",
    ),
    Fault(
        "fully_shard: full backward hooks are dropped",
        lambda: replaced(
            torch.nn.Module, "register_full_backward_hook", lambda original: lambda self, hook, prepend=False: None
        ),
        ("DS-11", "DS-20"),
        kinds=(),
        since="2.7",
    ),
    *(
        Fault(
            f"fully_shard: its own hook is in the wrong place: {name}",
            partial(_in_the_other_place, f"register_{name}"),
            ("DS-23",),
            kinds=(),
            since="2.7",
        )
        for name in ("forward_pre_hook", "forward_hook")
    ),
    *(
        Fault(
            f"fully_shard: states are of what is gathered: {name}",
            partial(_own_hook_is_missing, name),
            ("DS-24",),
            kinds=(),
            since="2.7",
        )
        for name in ("register_state_dict_pre_hook", "_register_load_state_dict_pre_hook")
    ),
    Fault(
        "fully_shard: post-accumulate hooks of shards are not called",
        _without_hooks_of_shards,
        ("DS-25", "DS-27"),
        kinds=(),
        since="2.7",
    ),
    Fault(
        "fully_shard: all-reduce hooks are dropped",
        lambda: replaced(
            import_module("torch.distributed.fsdp").FSDPModule,
            "set_all_reduce_hook",
            lambda original: lambda self, hook, **options: None,
        ),
        ("DS-25",),
        kinds=(),
        since="2.7",
    ),
    *(
        Fault(
            f"FSDP: {what}",
            partial(edited, import_module("torch.distributed.fsdp._runtime_utils"), name, change),
            ("DS-47",),
            kinds=(),
            since="2.13",
        )
        for what, name, change in (
            (
                "a gradient takes the place of those before",
                "_accumulate_sharded_grad",
                ("+= sharded_grad", "= sharded_grad"),
            ),
            ("gradients are not divided", "_reduce_grad", (PREDIVIDED, "pass")),
        )
        if hasattr(import_module("torch.distributed.fsdp._runtime_utils"), name)
    ),
)
