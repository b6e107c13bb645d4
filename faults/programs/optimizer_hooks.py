"""Faults in how hooks of an optimizer's step are called."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import MethodType
from typing import Any

import torch
from torch.optim import Optimizer, swa_utils

from ..engine import Fault, replaced
from ..registering import edited
from .state_dict_hooks import Patch, registering, removing, silenced

GLOBAL = sys.modules["torch.optim.optimizer"]
PRE, POST = "register_step_pre_hook", "register_step_post_hook"


def _instead(name: str, other: str) -> Patch:
    """Registers with the method ``other`` what is to be registered with ``name``."""
    return replaced(Optimizer, name, lambda original: lambda self, hook: getattr(self, other)(hook))


def _for_the_first_alone() -> Patch:
    """Calls a global hook for the first optimizer that comes by, and for no other."""

    def make(original: Any) -> Any:
        def register(hook: Any) -> Any:
            first: list[Any] = []

            def called(optimizer: Any, *arguments: Any) -> Any:
                first.append(optimizer)
                return hook(optimizer, *arguments) if optimizer is first[0] else None

            return original(called)

        return register

    return replaced(GLOBAL, "register_optimizer_step_post_hook", make)


def _called_by_the_closure() -> Patch:
    def make(original: Any) -> Any:
        def step(self: Any, closure: Any) -> Any:
            def evaluated() -> Any:
                for hook in self._optimizer_step_pre_hooks.values():
                    hook(self, (self, closure), {})
                return closure()

            return original(self, evaluated)

        step.hooked = getattr(original, "hooked", False)  # type: ignore[attr-defined]
        return step

    return replaced(torch.optim.LBFGS, "step", make)


def _cleared_by_copying() -> Patch:
    def make(original: Any) -> Any:
        def state(self: Any) -> Any:
            self._optimizer_step_pre_hooks.clear()
            return original(self)

        return state

    return replaced(Optimizer, "__getstate__", make)


def _wrapped_by_schedulers() -> Patch:
    def make(original: Any) -> Any:
        def init(self: Any, optimizer: Any, *others: Any, **options: Any) -> None:
            original(self, optimizer, *others, **options)
            optimizer.step = MethodType(Optimizer.profile_hook_step(optimizer.step.__func__), optimizer)

        return init

    return replaced(torch.optim.lr_scheduler.LRScheduler, "__init__", make)


def _stepping(change: Callable[[Any, Callable[..., Any]], Callable[..., Any]]) -> Callable[[Any], Any]:
    """A scheduler replaces the step of its optimizer by ``change(optimizer, step)``."""

    def make(original: Any) -> Any:
        def init(self: Any, optimizer: Any, *others: Any, **options: Any) -> None:
            original(self, optimizer, *others, **options)
            step: Any = change(optimizer, optimizer.step)
            step.__func__, step._wrapped_by_lr_sched = lambda _, *args: step(*args), True
            optimizer.step = step

        return init

    return make


def _hooks_of_then(optimizer: Any, step: Callable[..., Any]) -> Callable[..., Any]:
    """Steps with the hooks too that were there when the scheduler came."""
    hooks = {**optimizer._optimizer_step_pre_hooks}

    def stepping(*args: Any) -> Any:
        optimizer._optimizer_step_pre_hooks.update(hooks)
        return step(*args)

    return stepping


def _unnoticed(optimizer: Any, step: Callable[..., Any]) -> Callable[..., Any]:
    """The scheduler does not learn that there was a step."""

    def stepping(*args: Any) -> Any:
        result = step(*args)
        optimizer._opt_called = False
        return result

    return stepping


def _past_hooks(optimizer: Any, step: Callable[..., Any]) -> Callable[..., Any]:
    """Steps as the class did before it was wrapped in what calls hooks."""
    plain: Any = type(optimizer).step
    while hasattr(plain, "__wrapped__"):
        plain = plain.__wrapped__
    return lambda *args: plain(optimizer, *args)


def _without_grad_mode(original: Any) -> Any:
    """The step, with what calls its hooks, under ``no_grad``."""
    hooked = original if hasattr(original, "hooked") else Optimizer.profile_hook_step(original)
    step: Any = torch.no_grad()(hooked)
    step.hooked = True
    return step


def _under(scheduler: str, change: Callable[..., Any]) -> Callable[[], Patch]:
    """Has schedulers of that class change the step of their optimizer."""
    owner = getattr(torch.optim.lr_scheduler, scheduler, None) or getattr(swa_utils, scheduler)
    return lambda: replaced(owner, "__init__", _stepping(change))


def _keeping_the_closure(original: Any) -> Any:
    """Keeps the keyword arguments of a step that has some, whatever a pre-hook returns for them."""

    def register(self: Any, hook: Any) -> Any:
        def run(optimizer: Any, args: Any, kwargs: Any) -> Any:
            result = hook(optimizer, args, kwargs)
            return (result[0], kwargs or result[1]) if isinstance(result, tuple) and len(result) == 2 else result

        return original(self, run)

    return register


def _two_alone(original: Any) -> Any:
    """Calls no step pre-hook that comes when there are two."""

    def register(self: Any, hook: Any) -> Any:
        return original(self, hook if len(self._optimizer_step_pre_hooks) < 2 else lambda *arguments: None)

    return register


FAULTS = (
    Fault(
        "step pre-hooks of optimizers run after the step",
        lambda: _instead(PRE, POST),
        ("OP-01", "OP-02", "OP-14", "U-19"),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "step pre-hooks of optimizers get no arguments of the step",
        lambda: registering(PRE, lambda hook: lambda optimizer, args, kwargs: hook(optimizer, args[:1], {}), Optimizer),
        ("OP-01", "OP-16"),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "step pre-hooks of optimizers replace nothing",
        lambda: registering(PRE, silenced, Optimizer),
        ("OP-02",),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "step post-hooks of optimizers run before the step",
        lambda: _instead(POST, PRE),
        ("OP-03", "OP-14"),
        kinds=(),
        since="2.0",
    ),
    Fault("step hooks of all optimizers know one alone", _for_the_first_alone, ("OP-04",), kinds=(), since="2.0"),
    Fault(
        "step hooks have handles that remove the newest",
        lambda: removing(lambda handle, table: table and table.popitem()),
        ("OP-01", "OP-11"),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "step hooks have handles that remove nothing",
        lambda: removing(lambda handle, table: None),
        ("OP-01", "OP-02", "OP-03", "OP-04", "OP-11", "OP-17"),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "step hooks are called although a GradScaler has found infinite gradients",
        lambda: replaced(
            torch.amp.GradScaler,
            "_maybe_opt_step",
            lambda original: lambda self, optimizer, state, *args, **kwargs: optimizer.step(*args, **kwargs),
        ),
        ("OP-13",),
        kinds=(),
        since="2.3",
    ),
    Fault("step hooks are called by the closure of LBFGS", _called_by_the_closure, ("U-19",), kinds=(), since="2.0"),
    Fault(
        "step hooks are gone once an optimizer is copied",
        _cleared_by_copying,
        ("OP-15", "U-13"),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "step hooks are called twice under a scheduler",
        _wrapped_by_schedulers,
        ("OP-18",),
        kinds=(),
        since="2.0",
    ),
    *(
        Fault(f"under {scheduler} {what}", _under(scheduler, change), ("OP-18",), kinds=(), since="2.0")
        for scheduler, what, change in (
            ("LRScheduler", "hooks are called that were removed", _hooks_of_then),
            ("LRScheduler", "no step is noticed", _unnoticed),
            ("LambdaLR", "steps go past hooks", _past_hooks),
            ("ReduceLROnPlateau", "steps go past hooks", _past_hooks),
            ("SequentialLR", "steps go past hooks", _past_hooks),
            ("SWALR", "steps go past hooks", _past_hooks),
        )
    ),
    Fault(
        "step hooks of optimizers run without grad mode",
        lambda: replaced(torch.optim.SGD, "step", _without_grad_mode),
        ("OP-01", "OP-03"),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "a scheduler keeps its optimizer until the collector comes",
        lambda: edited(
            torch.optim.lr_scheduler.LRScheduler,
            "__init__",
            ("opt_ref = ref(self.optimizer)", "opt_ref = lambda optimizer=self.optimizer: optimizer"),
        ),
        ("OP-18",),
        kinds=(),
        since="2.6",
    ),
    Fault(
        "loading drops an optimizer's step post-hooks",
        lambda: edited(
            Optimizer, "__setstate__", ('if "_optimizer_step_post_hooks" not in self.__dict__:', "if True:")
        ),
        ("OP-19",),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "an optimizer's post-hooks go when a group comes",
        lambda: edited(
            torch.optim.Optimizer,
            "add_param_group",
            (
                "self.param_groups.append(param_group)",
                "self.param_groups.append(param_group); self._optimizer_step_post_hooks.clear()",
            ),
        ),
        ("OP-03",),
        since="2.0",
    ),
    Fault(
        "a closure that the step is given stays, whatever a pre-hook returns",
        lambda: replaced(Optimizer, PRE, _keeping_the_closure),
        ("OP-02",),
        since="2.0",
    ),
    Fault(
        "an optimizer calls two step pre-hooks",
        lambda: replaced(Optimizer, PRE, _two_alone),
        ("OP-11",),
        since="2.0",
    ),
)
