"""Faults in how DataParallel and DistributedDataParallel treat hooks."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

import torch

from ..engine import Fault, replaced


def _replicas_without_hooks() -> AbstractContextManager[None]:
    def make(original: Any) -> Any:
        def replicate(self: Any) -> Any:
            replica = original(self)
            for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks"):
                setattr(replica, name, type(getattr(replica, name))())
            return replica

        return replicate

    return replaced(torch.nn.Module, "_replicate_for_data_parallel", make)


def _with_other_weights(original: Any) -> Any:
    """What is wrapped gets parameters of the same numbers in the place of its own."""

    def make(self: Any, module: Any, *args: Any, **options: Any) -> None:
        for name, weight in module._parameters.items():
            module._parameters[name] = torch.nn.Parameter(weight.detach())
        original(self, module, *args, **options)

    return make


def _distributed() -> Any:
    return torch.nn.parallel.DistributedDataParallel


FAULTS = (
    Fault("DataParallel: replicas have no hooks", _replicas_without_hooks, ("DS-21",), kinds=()),
    Fault("DataParallel: replicas on devices have no hooks", _replicas_without_hooks, ("DS-01", "DS-02"), kinds=()),
    Fault(
        "DataParallel: the module is run past its hooks where there is no device",
        lambda: replaced(
            torch.nn.DataParallel, "forward", lambda original: lambda self, *args: self.module.forward(*args)
        ),
        ("DS-18",),
        kinds=(),
    ),
    Fault(
        "DistributedDataParallel: the module is run past its hooks",
        lambda: replaced(
            _distributed(), "_run_ddp_forward", lambda original: lambda self, *args: self.module.forward(*args)
        ),
        ("DS-03", "DS-19"),
        kinds=(),
        since="1.13",
    ),
    Fault(
        "DistributedDataParallel: full backward hooks on the wrapper are dropped",
        lambda: replaced(
            torch.nn.Module, "register_full_backward_hook", lambda original: lambda self, hook, prepend=False: None
        ),
        ("DS-22", "DS-03"),
        kinds=(),
    ),
    Fault(
        "DistributedDataParallel: comm hooks are dropped",
        lambda: replaced(_distributed(), "register_comm_hook", lambda original: lambda self, state, hook: None),
        ("DS-04", "DS-05", "DS-07"),
        kinds=(),
    ),
    Fault(
        "DistributedDataParallel: comm hooks are dropped in two processes",
        lambda: replaced(_distributed(), "register_comm_hook", lambda original: lambda self, state, hook: None),
        ("DS-06",),
        kinds=(),
        since="1.12",  # before, a process that has run a backward cannot be forked
    ),
    Fault(
        "DistributedDataParallel: PowerSGDState loses its errors in a pickle",
        lambda: replaced(
            import_module("torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook").PowerSGDState,
            "__getstate__",
            lambda original: lambda self: {**original(self), "error_dict": {}},
        ),
        ("DS-08",),
        kinds=(),
    ),
    Fault(
        "DistributedDataParallel: a module gets other parameters, without hooks",
        lambda: replaced(_distributed(), "__init__", _with_other_weights),
        ("DS-26",),
        kinds=(),
    ),
)
