"""Which optimizers are there beside plain ones? Subclasses, copies, and those that something was done to.

Clauses on plain optimizers run on them unchanged (`hookcheck.programs.chapters.clauses_on_hosts`).
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from hookcheck.probe.lazy import torch
from hookcheck.programs.host_kinds import Kind
from hookcheck.programs.hosting import OPTIMIZERS as NAMES
from hookcheck.programs.hosting import Make

_kind = partial(Kind, names=NAMES)


def _first_steps(optimizer: Any) -> Any:
    """The optimizer, as one of a subclass whose ``step`` calls that of its parent."""

    class Calling(type(optimizer)):
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    return Calling(optimizer.param_groups, **optimizer.defaults)


def _inheriting(optimizer: Any) -> Any:
    """The optimizer, as one of a subclass that has the ``step`` of its parent."""
    return type("Inheriting", (type(optimizer),), {})(optimizer.param_groups, **optimizer.defaults)


def _with(optimizer: Any, **options: bool) -> Any:
    """An optimizer of the same class and numbers, with options."""
    return type(optimizer)(optimizer.param_groups, **{**optimizer.defaults, **options})


def _scheduled(scheduler: Callable[[Any, Any], Any], optimizer: Any) -> Any:
    """The optimizer under a scheduler, which so far leaves its rate."""
    scheduler(torch.optim.lr_scheduler, optimizer)
    return optimizer


SCHEDULERS = {
    "StepLR": lambda of, optimizer: of.StepLR(optimizer, 1),
    "LambdaLR": lambda of, optimizer: of.LambdaLR(optimizer, lambda step: 1.0),
    "ReduceLROnPlateau": lambda of, optimizer: of.ReduceLROnPlateau(optimizer),
}
"""What puts an optimizer under a scheduler, by name."""


def _under_all(optimizer: Any) -> Any:
    """The optimizer under all of them, one after the other."""
    for scheduler in SCHEDULERS.values():
        _scheduled(scheduler, optimizer)
    return optimizer


def _loaded(optimizer: Any) -> Any:
    """The optimizer, with a state that it loaded."""
    optimizer.load_state_dict(optimizer.state_dict())
    return optimizer


def _stepped(optimizer: Any) -> Any:
    """The optimizer, after a step with hooks that were removed again."""
    handles = [optimizer.register_step_pre_hook(print), optimizer.register_step_post_hook(print)]
    for handle in handles:
        handle.remove()
    return optimizer


def _grouped(optimizer: Any) -> Any:
    """The optimizer, to which a group was added, of no parameters so far."""
    optimizer.add_param_group({"params": []})
    return optimizer


def _copied(make: Make, optimizer: Any) -> Any:
    """A copy that steps the parameters of the original."""
    other = make(optimizer)
    for copied_group, group in zip(other.param_groups, optimizer.param_groups):
        copied_group["params"] = group["params"]
    return other


LOCAL = dict.fromkeys(("SZ-09", "U-13: program"), "its class cannot be pickled by its name")
OF_A_PARAMETER = {"OP-20": "the parameter of such an optimizer holds what made it, which cannot be pickled"}
NO_OPTION = {
    "U-19": "LBFGS has no such option",
    "OP-23: program": "it makes an optimizer that has no such option, or another one in its place",
}
OF_LBFGS = ("U-19", "OP-23: LBFGS: *", "OP-23: program")
COPIED = dict.fromkeys(OF_LBFGS, "a copy of an LBFGS has no list of its parameters, and takes no step, as SZ-34 says")

OPTIMIZERS = {
    "with super().step()": _kind(
        _first_steps,
        but={
            **LOCAL,
            **dict.fromkeys(
                ("U-19", "OP-21", "OP-23", "OP-24"),
                "hooks are called for both steps, as the facts of other clauses say",
            ),
        },
    ),
    "with an inherited step": _kind(_inheriting, but=LOCAL),
    "foreach": _kind(partial(_with, foreach=True), but=NO_OPTION),
    "fused": _kind(
        partial(_with, fused=True),
        since=(2, 4),
        but={
            **NO_OPTION,
            **dict.fromkeys(("OP-13", "OP-21"), "a fused optimizer takes a GradScaler's numbers on CUDA alone"),
        },
    ),
    "with StepLR": _kind(partial(_scheduled, SCHEDULERS["StepLR"])),
    "with LambdaLR": _kind(partial(_scheduled, SCHEDULERS["LambdaLR"])),
    "with ReduceLROnPlateau": _kind(partial(_scheduled, SCHEDULERS["ReduceLROnPlateau"])),
    "with several schedulers": _kind(_under_all),
    "loaded": _kind(_loaded),
    "deep copy of one with schedulers": _kind(
        partial(_copied, lambda optimizer: copy.deepcopy(_under_all(optimizer))), but=COPIED
    ),
    "hooked before": _kind(_stepped),
    "with a group more": _kind(
        _grouped,
        but={
            "OP-08": "it loads the state of one that has as many groups",
            "OP-12": "names are given to all groups or to none",
            **dict.fromkeys(OF_LBFGS, "LBFGS steps one group alone, and says so"),
        },
    ),
    "deep copy": _kind(partial(_copied, copy.deepcopy), but=COPIED),
    "unpickled": _kind(
        partial(_copied, lambda optimizer: pickle.loads(pickle.dumps(optimizer))), but={**COPIED, **OF_A_PARAMETER}
    ),
}
"""The hosts of optimizers by name."""


def _distributed() -> Any:
    return import_module("torch.distributed.optim")


def _without_redundancy(optimizer: Any) -> Any:
    """The same that keeps a share of the state in each process; it collects the shares before it gives its state."""
    kind: Any = _distributed().ZeroRedundancyOptimizer

    class Collecting(kind):
        def state_dict(self) -> Any:
            self.consolidate_state_dict()
            return super().state_dict()

    return Collecting(optimizer.param_groups, type(optimizer), **optimizer.defaults)


def _averaging(optimizer: Any) -> Any:
    """The optimizer in one that averages over processes, first after a hundred steps."""
    averagers: Any = import_module("torch.distributed.algorithms.model_averaging.averagers")
    averager = averagers.PeriodicModelAverager(period=4, warmup_steps=100)
    return _distributed().PostLocalSGDOptimizer(optimizer, averager)


def _named(optimizer: Any) -> Any:
    """The same that saves its state by names of parameters."""
    parameters = [one for group in optimizer.param_groups for one in group["params"]]
    named = {str(number): one for number, one in enumerate(parameters)}
    return _distributed()._NamedOptimizer(named, type(optimizer), **optimizer.defaults)


WITHIN = dict.fromkeys(
    ("OP-04", "OP-14", "OP-11: *optimizer_step*", "OP-18: *: hooks in two steps", "OP-2[34]: *: hooks of *"),
    "hooks on all optimizers meet the one within as well",
)

DEAF = dict.fromkeys(
    ("U-13", "U-19", "SZ-09", "OP-2[0134]"), "it takes no hooks, aloud, as the facts of other clauses say"
)

DISTRIBUTED = {
    "ZeroRedundancyOptimizer": _kind(
        _without_redundancy,
        but={
            **WITHIN,
            **dict.fromkeys(("OP-15", "U-13", "SZ-09"), "a copy of it has no optimizer within, and takes no step"),
            "OP-21: program": "it is made of the class of another one, which a subclass has to name as well",
        },
    ),
    "PostLocalSGDOptimizer": _kind(_averaging, but={**WITHIN, **DEAF}),
    "_NamedOptimizer": _kind(_named, but={**WITHIN, **DEAF, "OP-22": "it loads no state before its first step"}),
}
"""The hosts of optimizers for several processes, by name; they are made in a process group."""
