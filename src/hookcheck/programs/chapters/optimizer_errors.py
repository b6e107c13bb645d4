"""What becomes of step hooks where the step of an optimizer raises, or one of the hooks does?

Pre-hooks run before the step, so they have run; post-hooks run after it, and it is not over. The error comes out, and
the next step is one as any other: alone, under a learning rate scheduler, and by a GradScaler.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from hookcheck.contract.clause import PIN
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.chapters.optimizer_hooks import GLOBAL_PRE, STEP_POST, STEP_PRE, all_optimizers
from hookcheck.programs.chapters.raising_in_contexts import Deliberate, attempted
from hookcheck.programs.check import Check
from hookcheck.programs.program import program
from hookcheck.programs.watching import noting

ORDER = ("global pre", "pre", "post", "global post")
"""The hooks of a step in the order in which they are called; the step itself is in the middle."""


def refuse(*_: Any) -> Any:
    """A closure or a hook that raises."""
    raise Deliberate


def by_hand(parameter: Any, falls: bool = False) -> Any:
    """An optimizer that takes a parameter down by a quarter of its gradient, or raises while its group says so."""

    def step(self: Any, closure: Any = None) -> None:
        if closure:
            closure()
        if self.param_groups[0]["falls"]:
            raise Deliberate
        with torch.no_grad():
            parameter.sub_(0.25 * parameter.grad)

    return type("ByHand", (torch.optim.Optimizer,), {"step": step})([parameter], {"falls": falls})


def scheduled(optimizer: Any) -> Any:
    """The optimizer under a scheduler that leaves its rate as it is."""
    optimizer.scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=1.0)
    return optimizer


OPTIMIZERS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "SGD": (lambda parameter: torch.optim.SGD([parameter], lr=0.25), 0.5),
    "SGD, foreach": (lambda parameter: torch.optim.SGD([parameter], lr=0.25, foreach=True), 0.5),
    "SGD under a scheduler": (lambda parameter: scheduled(torch.optim.SGD([parameter], lr=0.25)), 0.5),
    "Adam": (lambda parameter: torch.optim.Adam([parameter], lr=0.25), 0.75),
    "LBFGS": (lambda parameter: torch.optim.LBFGS([parameter], lr=0.25, max_iter=1), 0.75),
    "one of a class by hand": (by_hand, 0.5),
}
"""Optimizers of one parameter, and what their first step makes of 1 where the gradient is 2: the rate times 2 less; of
Adam the rate, since the gradient is divided by its size; of LBFGS the rate times 2 by the sum of the gradients."""


def parameter_and(make: Callable[[Any], Any]) -> tuple[Any, Any]:
    """A parameter of 1 with a gradient of 2, and its optimizer."""
    parameter = nn.Parameter(torch.tensor([1.0]))
    parameter.grad = torch.tensor([2.0])
    return parameter, make(parameter)


def hooked(optimizer: Any, register: Any, hooks: dict[str, Any]) -> dict[str, Any]:
    """Registers a hook of each of the four sorts, and gives their handles."""
    by_name = {
        "global pre": register.register_optimizer_step_pre_hook,
        "pre": optimizer.register_step_pre_hook,
        "post": optimizer.register_step_post_hook,
        "global post": register.register_optimizer_step_post_hook,
    }
    return {name: by_name[name](hook) for name, hook in hooks.items()}


@program("OP-23", PIN, since="2.0", source=f"{STEP_PRE}, {STEP_POST}; undocumented: a step that raises")
def hooks_of_a_step_that_raises(check: Check) -> None:
    """Where the step itself raises its pre-hooks have run and no post-hook does, the error comes out and gradients are
    recorded as before; the next step is as if it were the first one, with each hook once."""
    for name, (make, value) in OPTIMIZERS.items():
        parameter, optimizer = parameter_and(make)
        log: list[str] = []
        with all_optimizers() as register:
            hooked(optimizer, register, {word: noting(log, word) for word in ORDER})
            check.equal(f"{name}: what comes out", attempted(partial(optimizer.step, refuse)), "Deliberate")
            check.order(f"{name}: hooks of the step that raises", log, ["global pre", "pre"])
            check.equal(f"{name}: parameter after it", parameter, [1.0])
            check.true(f"{name}: gradients are recorded after it", torch.is_grad_enabled())
            log.clear()
            check.equal(f"{name}: what the next step gives", optimizer.step(partial(float, 7)), _given(name))
        check.order(f"{name}: hooks of the next step", log, list(ORDER))
        check.equal(f"{name}: parameter after the next step", parameter, [value])


def _given(name: str) -> Any:
    """What a step gives whose closure gives 7."""
    return None if name == "one of a class by hand" else 7.0


@program("OP-24", PIN, since="2.0", source=f"{STEP_PRE}, {STEP_POST}, {GLOBAL_PRE}; undocumented: a hook that raises")
def a_step_hook_raises(check: Check) -> None:
    """A step hook that raises ends the step where it is: hooks before it have run, those after it do not, and the step
    was taken if it comes after it; once it is removed the next step is taken, with each other hook once."""
    for name in ("SGD", "SGD under a scheduler", "one of a class by hand"):
        for place, raising in enumerate(ORDER):
            parameter, optimizer = parameter_and(OPTIMIZERS[name][0])
            log: list[str] = []
            with all_optimizers() as register:
                handle = hooked(optimizer, register, {raising: refuse})[raising]
                hooked(optimizer, register, {word: noting(log, word) for word in ORDER if word != raising})
                fact = f"{name}, {raising}-hook"
                check.equal(f"{fact}: what comes out", attempted(optimizer.step), "Deliberate")
                check.order(f"{fact}: hooks of that step", log, list(ORDER[:place]))
                taken = place >= 2
                check.equal(f"{fact}: parameter after it", parameter, [0.5 if taken else 1.0])
                handle.remove()
                log.clear()
                optimizer.step()
            check.order(f"{fact}: hooks of the next step", log, [word for word in ORDER if word != raising])
            check.equal(f"{fact}: parameter after the next step", parameter, [0.0 if taken else 0.5])


@program("OP-25", PIN, since="2.3", source="torch.amp.GradScaler.step, 'unscale_'; undocumented: a step that raises")
def a_scaled_step_raises(check: Check) -> None:
    """Where the step that a GradScaler takes raises, no post-hook runs; it may be taken again, with gradients that are
    unscaled once, or left out by ``update()``, and then the step after it is right, with each hook once."""
    for cause in ("the step", "a pre-hook"):
        for way in ("again", "left out"):
            parameter, optimizer = parameter_and(partial(by_hand, falls=cause == "the step"))
            scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
            log: list[str] = []

            def backward(parameter: Any = parameter, scaler: Any = scaler) -> None:
                parameter.grad = None
                scaler.scale((2 * parameter).sum()).backward()

            optimizer.register_step_pre_hook(noting(log, "pre"))
            optimizer.register_step_post_hook(noting(log, "post"))
            handle = optimizer.register_step_pre_hook(refuse if cause == "a pre-hook" else noting([], ""))
            backward()
            fact = f"{cause} raises, {way}"
            check.equal(f"{fact}: what comes out", attempted(partial(scaler.step, optimizer)), "Deliberate")
            check.order(f"{fact}: hooks of that step", log, ["pre"])
            handle.remove()
            optimizer.param_groups[0]["falls"] = False
            if way == "left out":
                scaler.update()
                backward()
            log.clear()
            check.works(f"{fact}: the next step", partial(scaler.step, optimizer))
            check.order(f"{fact}: hooks of the next step", log, ["pre", "post"])
            check.equal(f"{fact}: gradient and parameter", [parameter.grad, parameter], [[2.0], [0.5]])
            scaler.update()
            check.equal(f"{fact}: the scale", scaler.get_scale(), 4.0)
