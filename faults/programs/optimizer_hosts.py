"""Faults that only some host of optimizers shows: hooks that are lost on subclasses, copies and under schedulers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import MethodType
from typing import Any

import torch

from ..engine import Fault, replaced
from ..registering import edited
from .clauses_on_hosts import HANDLE, is_marked, marking_copies, marking_unpickled, on_hosts, once, where_marked

OPTIMIZER = torch.optim.Optimizer


def _where(test: Callable[[Any], bool], name: str) -> Callable[[], AbstractContextManager[None]]:
    """Registering a hook does nothing on an optimizer that is such."""

    def make(original: Any) -> Any:
        def register(self: Any, hook: Any, *args: Any, **options: Any) -> Any:
            return original(self, (lambda *_: None) if test(self) else hook, *args, **options)

        return register

    return lambda: replaced(OPTIMIZER, name, make)


@contextmanager
def _scheduled_deaf(name: str) -> Iterator[None]:
    """Registering a step post-hook does nothing on an optimizer under a scheduler of that name."""

    def make(original: Any) -> Any:
        def init(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(self, optimizer, *args, **kwargs)
            vars(optimizer)["marked"] = True

        return init

    scheduler = getattr(torch.optim.lr_scheduler, name)
    with replaced(scheduler, "__init__", make), _where(is_marked, "register_step_post_hook")():
        yield


@contextmanager
def _loaded_without_hooks() -> Iterator[None]:
    """Registering a step pre-hook does nothing on an optimizer that loaded a state."""

    def make(original: Any) -> Any:
        def load(self: Any, state: Any) -> None:
            original(self, state)
            vars(self)["marked"] = True

        return load

    with replaced(OPTIMIZER, "load_state_dict", make), _where(is_marked, "register_step_pre_hook")():
        yield


def _is_scheduled(optimizer: Any) -> bool:
    return hasattr(optimizer.step, "_wrapped_by_lr_sched")


def _is_of(name: str, optimizer: Any) -> bool:
    """Whether an optimizer is of a class of that name; torch imports some of them late."""
    return name in [kind.__name__ for kind in type(optimizer).__mro__]


def _without_a_word(name: str) -> AbstractContextManager[None]:
    """Registering a step pre-hook on an optimizer of a class of that name gives a handle and does nothing."""

    def make(original: Any) -> Any:
        def register(self: Any, hook: Any) -> Any:
            return HANDLE(OrderedDict()) if _is_of(name, self) else original(self, hook)

        return register

    return replaced(OPTIMIZER, "register_step_pre_hook", make)


def _is_of_a_user(optimizer: Any) -> bool:
    """Whether the class of an optimizer is none of torch's."""
    return not type(optimizer).__module__.startswith("torch.")


def _marked_deaf() -> AbstractContextManager[None]:
    """Registering a step pre-hook does nothing on an optimizer that is marked."""
    return _where(is_marked, "register_step_pre_hook")()


def _wrapped_again(original: Any) -> Any:
    """Adding a group to an optimizer that is complete has its step call the hooks once more."""

    def add(self: Any, group: Any) -> None:
        complete = "_optimizer_step_pre_hooks" in vars(self) and bool(self.param_groups)
        original(self, group)
        if complete and len(self.param_groups) > 1:
            self.step = MethodType(OPTIMIZER.profile_hook_step(type(self).step), self)

    return add


FAULTS: tuple[Fault, ...] = (
    on_hosts(
        "a subclass of an optimizer is saved past its hooks",
        _where(_is_of_a_user, "register_state_dict_pre_hook"),
        "with super().step()",
        clause="HO-04",
    ),
    on_hosts(
        "a step that a class inherits is wrapped again",
        lambda: edited(
            OPTIMIZER,
            "_patch_step_function",
            ('self.__class__.step, "hooked"', 'vars(self.__class__).get("step"), "hooked"'),
        ),
        "with an inherited step",
        clause="HO-04",
    ),
    on_hosts(
        "foreach loses step hooks",
        _where(lambda optimizer: bool(optimizer.defaults.get("foreach")), "register_step_pre_hook"),
        "foreach",
        clause="HO-04",
    ),
    on_hosts(
        "a fused optimizer loses hooks on its state",
        _where(lambda optimizer: bool(optimizer.defaults.get("fused")), "register_state_dict_post_hook"),
        "fused",
        clause="HO-04",
        since="2.4",
    ),
    on_hosts(
        "under a scheduler hooks on the state are lost",
        _where(_is_scheduled, "register_load_state_dict_post_hook"),
        "with several schedulers",
        clause="HO-04",
    ),
    *(
        on_hosts(
            f"an optimizer under {name} takes no step post-hooks",
            partial(_scheduled_deaf, name),
            f"with {name}",
            clause="HO-04",
        )
        for name in ("StepLR", "LambdaLR", "ReduceLROnPlateau")
    ),
    on_hosts("what loaded a state takes no step hooks", _loaded_without_hooks, "loaded", clause="HO-04"),
    on_hosts(
        "an optimizer takes no step post-hooks once all were removed",
        lambda: once(OPTIMIZER, "register_step_post_hook", "_optimizer_step_post_hooks"),
        "hooked before",
        clause="HO-04",
    ),
    on_hosts(
        "a group that is added has the step wrapped again",
        lambda: replaced(OPTIMIZER, "add_param_group", _wrapped_again),
        "with a group more",
        clause="HO-04",
    ),
    on_hosts(
        "a deep copy of an optimizer takes no step hooks",
        lambda: where_marked(marking_copies(OPTIMIZER, shallow=False), _marked_deaf()),
        "deep copy",
        "deep copy of one with schedulers",
        clause="HO-04",
    ),
    on_hosts(
        "an optimizer that was unpickled takes no step hooks",
        lambda: where_marked(marking_unpickled(OPTIMIZER), _marked_deaf()),
        "unpickled",
        clause="HO-04",
    ),
    on_hosts(
        "a ZeroRedundancyOptimizer takes no step post-hooks",
        _where(partial(_is_of, "ZeroRedundancyOptimizer"), "register_step_post_hook"),
        "ZeroRedundancyOptimizer",
        clause="HO-09",
    ),
    on_hosts(
        "a ZeroRedundancyOptimizer is saved past its hooks",
        _where(partial(_is_of, "ZeroRedundancyOptimizer"), "register_state_dict_pre_hook"),
        "ZeroRedundancyOptimizer",
        clause="HO-09",
    ),
    *(
        on_hosts(f"a {name} loses step hooks without a word", partial(_without_a_word, name), name, clause="HO-09")
        for name in ("PostLocalSGDOptimizer", "_NamedOptimizer")
    ),
)
