"""What do hooks on an optimizer's step promise, and the handles of all its hooks?

A step pre-hook is called as ``hook(optimizer, args, kwargs)`` before every step and may replace its arguments, a step
post-hook is called so after it; each has a global form for all optimizers. Making an optimizer wraps ``step`` of its
class for good: that is where they are called.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.program import program
from hookcheck.programs.watching import noting

STEP_PRE = "torch.optim.Optimizer.register_step_pre_hook"
STEP_POST = "torch.optim.Optimizer.register_step_post_hook"
GLOBAL_PRE = "torch.optim.optimizer.register_optimizer_step_pre_hook"
GLOBAL_POST = "torch.optim.optimizer.register_optimizer_step_post_hook"
SAVE_PRE = "torch.optim.Optimizer.register_state_dict_pre_hook"
SAVE_POST = "torch.optim.Optimizer.register_state_dict_post_hook"
LOAD_PRE = "torch.optim.Optimizer.register_load_state_dict_pre_hook"
LOAD_POST = "torch.optim.Optimizer.register_load_state_dict_post_hook"


def _parameter(value: float = 1.0, grad: float = 2.0) -> Any:
    parameter = nn.Parameter(torch.tensor([value]))
    parameter.grad = torch.tensor([grad])
    return parameter


def _sgd(lr: float = 0.25) -> tuple[Any, Any]:
    """A parameter, which every step takes down by ``2 * lr``, and its optimizer."""
    parameter = _parameter()
    return parameter, torch.optim.SGD([parameter], lr=lr)


def _registered(optimizer: Any, api: str) -> Any:
    """The method of ``optimizer`` that registers what ``api`` names."""
    return getattr(optimizer, api.rpartition(".")[2])


@contextmanager
def all_optimizers() -> Iterator[Any]:
    """The module of the global hooks, which ``torch.optim`` does not offer as an attribute; none is left behind."""
    module = import_module("torch.optim.optimizer")
    tables = [module._global_optimizer_pre_hooks, module._global_optimizer_post_hooks]
    contents = [dict(table) for table in tables]
    try:
        yield module
    finally:
        for table, content in zip(tables, contents):
            table.clear()
            table.update(content)


@program("OP-01", PROMISE, since="2.0", source=f"{STEP_PRE}; 'called before optimizer step', signature")
def a_pre_hook_runs_before_the_step(check: Check) -> None:
    """A step pre-hook is called as ``(optimizer, args, kwargs)`` before every step: parameters are what they were."""
    parameter, optimizer = _sgd()
    closure = partial(torch.tensor, 7.0)
    log: list[Any] = []
    given: list[Any] = []

    def seen(optimizer: Any, args: Any, kwargs: Any) -> None:
        log.append(("first", parameter.item()))
        given.append((optimizer, args, kwargs, torch.is_grad_enabled()))

    handle = optimizer.register_step_pre_hook(seen)
    optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: log.append(("second", parameter.item())))
    optimizer.step()
    optimizer.step(closure=closure)
    check.order("hooks, with the parameter", log, [("first", 1), ("second", 1), ("first", 0.5), ("second", 0.5)])
    check.true("the optimizer is given", given[0][0] is optimizer, "argument")
    check.equal("kwargs of a step without any", given[0][2], {}, "argument")
    check.true("kwargs of a step with a closure", given[1][2] == {"closure": closure}, "argument")
    check.true("args is a tuple", type(given[0][1]) is tuple, "argument")
    check.true("gradients are recorded as around the step", given[0][3])
    handle.remove()
    optimizer.step(closure)
    check.order("hooks once the first is removed", log[4:], [("second", 0)])


@program("OP-02", PROMISE, since="2.0", source=f"{STEP_PRE}; 'transformed values are returned as a tuple'")
def a_pre_hook_replaces_the_arguments(check: Check) -> None:
    """A step pre-hook may return the step's new arguments as a pair ``(new_args, new_kwargs)``, or None."""
    parameter, optimizer = _sgd()
    log: list[Any] = []

    def closure() -> Any:
        log.append("closure")
        return torch.tensor(7.0)

    optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: (args, {"closure": closure}))
    handle = optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: log.append(list(kwargs)))
    check.equal("what the step gives", optimizer.step(closure=partial(torch.tensor, 3.0)), 7)
    check.order("what a later hook and the step get", log, [["closure"], "closure"])
    handle.remove()
    for what, value in (("a tuple of one", ({},)), ("a list of two", [(), {}]), ("False", False)):
        handle = optimizer.register_step_pre_hook(lambda optimizer, args, kwargs, value=value: value)
        check.raises(f"a hook that returns {what}", RuntimeError, optimizer.step, "a tuple of (new_args, new_kwargs)")
        handle.remove()
    check.equal("the parameter after the one step", parameter, [0.5])
    check.equal("what the step gives once they are removed", check.works("a step then", optimizer.step), 7)


@program("OP-03", PROMISE, since="2.0", source=f"{STEP_POST}; 'called after optimizer step', signature '-> None'")
def a_post_hook_runs_after_the_step(check: Check) -> None:
    """A step post-hook is called as ``(optimizer, args, kwargs)`` after every step and changes nothing by returning."""
    parameter, optimizer = _sgd()
    closure = partial(torch.tensor, 7.0)
    log: list[Any] = []
    given: list[Any] = []

    def seen(optimizer: Any, args: Any, kwargs: Any) -> Any:
        log.append(("first", parameter.item()))
        given.append((optimizer, kwargs, torch.is_grad_enabled()))
        return args, {}

    handle = optimizer.register_step_post_hook(seen)
    optimizer.register_step_post_hook(lambda optimizer, args, kwargs: log.append(("second", parameter.item())))
    check.equal("what a step gives", optimizer.step(closure=closure), 7)
    optimizer.add_param_group({"params": [_parameter()]})
    optimizer.step()
    check.order("hooks, with the parameter", log, [("first", 0.5), ("second", 0.5), ("first", 0), ("second", 0)])
    check.true("the optimizer is given", given[0][0] is optimizer, "argument")
    check.true("kwargs are given", given[0][1] == {"closure": closure}, "argument")
    check.true("gradients are recorded as around the step", given[0][2])
    handle.remove()
    optimizer.step()
    check.order("hooks once the first is removed", log[4:], [("second", -0.5)])


@program("OP-04", PROMISE, since="2.0", source=f"{GLOBAL_PRE}, {GLOBAL_POST}; 'common to all optimizers'")
def global_hooks_are_called_for_all(check: Check) -> None:
    """Global step hooks are called before and after the step of every optimizer, until they are removed."""
    optimizers = {"SGD": torch.optim.SGD([_parameter()], lr=0.25), "Adagrad": torch.optim.Adagrad([_parameter()], lr=1)}
    names = {id(optimizer): name for name, optimizer in optimizers.items()}
    log: list[Any] = []

    def value(optimizer: Any) -> float:
        return float(optimizer.param_groups[0]["params"][0])

    def pre(optimizer: Any, args: Any, kwargs: Any) -> Any:
        log.append(("pre", names[id(optimizer)], value(optimizer)))
        return args, {"closure": partial(torch.tensor, 7.0)}

    def post(optimizer: Any, args: Any, kwargs: Any) -> None:
        log.append(("post", names[id(optimizer)], value(optimizer), list(kwargs)))

    with all_optimizers() as register:
        handles = register.register_optimizer_step_pre_hook(pre), register.register_optimizer_step_post_hook(post)
        for name, optimizer in optimizers.items():
            check.equal(f"what a step of {name} gives", optimizer.step(), 7)
        for handle in handles:
            handle.remove()
        check.equal("what a step gives once they are removed", optimizers["SGD"].step(), None)
    # Adagrad's first step is lr * grad / sqrt(grad**2): one
    sgd = [("pre", "SGD", 1.0), ("post", "SGD", 0.5, ["closure"])]
    check.order("calls", log, [*sgd, ("pre", "Adagrad", 1.0), ("post", "Adagrad", 0.0, ["closure"])])


@program("OP-11", PROMISE, since="2.0", source=f"{STEP_PRE} and its like; 'Returns'")
def every_registration_gives_a_handle(check: Check) -> None:
    """Every registration of an optimizer's hook gives a RemovableHandle, which removes that hook alone."""
    for api in (STEP_PRE, STEP_POST, GLOBAL_PRE, GLOBAL_POST, SAVE_PRE, SAVE_POST, LOAD_PRE, LOAD_POST):
        _, optimizer = _sgd()
        name = api.rpartition(".")[2]
        with all_optimizers() as register:
            owner = register if api in (GLOBAL_PRE, GLOBAL_POST) else optimizer
            if not hasattr(owner, name):
                continue
            log: list[str] = []
            handles = [getattr(owner, name)(lambda *arguments, log=log, who=who: log.append(who)) for who in "abcd"]
            removable = all(type(handle) is torch.utils.hooks.RemovableHandle for handle in handles)
            check.true(f"what {name} gives", removable, "argument")
            handles[1].remove()
            optimizer.step()
            optimizer.load_state_dict(optimizer.state_dict())
            check.order(f"hooks of {name} that are left", log, ["a", "c", "d"])
            for handle in handles:
                handle.remove()
            optimizer.step()
            optimizer.load_state_dict(optimizer.state_dict())
            check.calls(f"calls of {name} once all are removed", len(log) - 3, 0)


@program("OP-13", PIN, since="2.3", source="torch.amp.GradScaler.step; relied on by profilers and trainers")
def a_skipped_step_calls_no_hook(check: Check) -> None:
    """Step hooks are not called where a GradScaler skips the step since a gradient is infinite."""
    parameter, optimizer = _sgd()
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    log: list[str] = []
    optimizer.register_step_pre_hook(lambda *arguments: log.append("pre"))
    optimizer.register_step_post_hook(lambda *arguments: log.append("post"))
    for gradient in (float("inf"), 2.0):
        parameter.grad = None
        scaler.scale((gradient * parameter).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        check.order(f"hooks under a gradient of {gradient}", log, ["pre", "post"] if gradient == 2 else [])
    check.equal("the parameter after the one step", parameter, [0.5])


@program("OP-14", PIN, since="2.0", source=f"{GLOBAL_PRE}, {GLOBAL_POST}; the order is not documented")
def global_hooks_enclose_the_others(check: Check) -> None:
    """Global step hooks enclose an optimizer's own: global pre, pre, step, post, global post."""
    parameter, optimizer = _sgd()
    log: list[Any] = []

    def hook(name: str) -> Any:
        return lambda optimizer, args, kwargs: log.append((name, parameter.item()))

    optimizer.register_step_post_hook(hook("post"))
    optimizer.register_step_pre_hook(hook("pre"))
    with all_optimizers() as register:
        register.register_optimizer_step_pre_hook(hook("global pre"))
        register.register_optimizer_step_post_hook(hook("global post"))
        optimizer.step()
    check.order("hooks, with the parameter", log, [("global pre", 1), ("pre", 1), ("post", 0.5), ("global post", 0.5)])


@program("U-19", PIN, since="2.0", source=f"{STEP_PRE} and torch.optim.LBFGS; relied on by trainers and profilers")
def one_call_a_step_of_lbfgs(check: Check) -> None:
    """Step hooks are called once a ``step`` of LBFGS, not once for each evaluation of its closure."""
    parameter = _parameter()
    optimizer: Any = torch.optim.LBFGS([parameter], lr=0.25, max_iter=4)
    log: list[str] = []

    def closure() -> Any:
        log.append("closure")
        optimizer.zero_grad()
        loss = (parameter**2).sum()
        loss.backward()
        return loss

    optimizer.register_step_pre_hook(lambda *arguments: log.append("pre"))
    optimizer.register_step_post_hook(lambda *arguments: log.append("post"))
    optimizer.step(closure)
    evaluations = log.count("closure")
    check.true("the closure is called several times", evaluations > 1, "call")
    check.order("hooks and evaluations", log, ["pre", *["closure"] * evaluations, "post"])


@program("OP-15", PIN, since="2.0", source="pytorch#89176")
def a_deepcopy_has_the_hooks(check: Check) -> None:
    """A deepcopy of an optimizer has the hooks of the original, as that of a module has."""
    _, optimizer = _sgd()
    log: list[str] = []
    optimizer.register_step_pre_hook(lambda *arguments: log.append("pre"))
    optimizer.register_step_post_hook(lambda *arguments: log.append("post"))
    other = copy.deepcopy(optimizer)
    optimizer.step()
    check.order("hooks in a step of the original", log, ["pre", "post"])
    log.clear()
    other.step()
    check.order("hooks in a step of the copy", log, ["pre", "post"])


@program(
    "OP-19", PIN, since="2.0", source="torch.optim.Optimizer.load_state_dict; relied on by all who resume training"
)
def loading_keeps_hooks(check: Check) -> None:
    """An optimizer that loads a state dict keeps its hooks, of every kind, and their order."""
    _, optimizer = _sgd()
    log: list[str] = []
    names = [api.rpartition(".")[2] for api in (STEP_PRE, STEP_POST, SAVE_PRE, SAVE_POST, LOAD_PRE, LOAD_POST)]
    names = [name for name in names if hasattr(optimizer, name)]
    for name in names:
        for who in ("a", "b"):
            getattr(optimizer, name)(lambda *arguments, name=name, who=who: log.append(f"{name}: {who}"))
    optimizer.load_state_dict(optimizer.state_dict())
    log.clear()
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    check.order("hooks after loading", log, [f"{name}: {who}" for name in names for who in ("a", "b")])


@program("OP-16", PIN, since="2.0", source=f"pytorch#89176; {STEP_PRE}, signature")
def args_are_those_of_the_step(check: Check) -> None:
    """The ``args`` of a step pre-hook are the positional arguments of the call, and may be replaced by such."""
    parameter, optimizer = _sgd()
    given: list[Any] = []
    calls: list[None] = []

    def closure() -> None:
        calls.append(None)

    handle = optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: given.append(args))
    optimizer.step()
    optimizer.step(closure)
    check.equal("lengths of args without and with a closure", [len(args) for args in given], [0, 1], "entry")
    check.true("the last of them is the closure", given[1][-1] is closure, "argument")
    check.calls("calls of the closure that step is given", len(calls), 1)
    handle.remove()
    optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: ((closure,), {}))
    with suppress(Exception):  # which one is raised depends on the release
        optimizer.step()
    check.calls("calls of a closure that a hook gives as the only argument", len(calls) - 1, 1)
    check.equal("the parameter after three steps", parameter, [-0.5])


@program("OP-17", PROMISE, since="2.0", source="pytorch#89176")
def a_hook_removes_itself(check: Check) -> None:
    """A step hook may remove itself while it runs; the others run all the same."""
    for api in (STEP_PRE, STEP_POST):
        parameter, optimizer = _sgd()
        log: list[str] = []
        handles: list[Any] = []

        def once(*arguments: Any, handles: Any = handles, log: Any = log) -> None:
            log.append("once")
            handles[0].remove()

        register = _registered(optimizer, api)
        handles.append(register(once))
        register(lambda *arguments, log=log: log.append("always"))
        name = api.rpartition(".")[2]
        check.works(f"the first step with {name}", optimizer.step)
        check.works(f"the second step with {name}", optimizer.step)
        check.calls(f"calls of what removes itself, with {name}", log.count("once"), 1)
        check.calls(f"calls of the other, with {name}", log.count("always"), 2)
        check.equal(f"the parameter after two steps with {name}", parameter, [0])


def _schedulers() -> dict[str, tuple[Any, float]]:
    """Each learning rate scheduler by name: how it is made, and what a rate of 1/4 is after two of its steps."""
    of, swa = torch.optim.lr_scheduler, import_module("torch.optim.swa_utils")

    def halving(optimizer: Any) -> Any:
        return of.StepLR(optimizer, step_size=1, gamma=0.5)

    def staying(optimizer: Any) -> Any:
        return of.ExponentialLR(optimizer, gamma=1.0)

    class Plateau(of.ReduceLROnPlateau):
        def step(self, *_: Any) -> None:
            super().step(1.0)  # what is measured is as good once more, and not better

    return {
        "StepLR": (halving, 0.0625),
        "LambdaLR": (lambda optimizer: of.LambdaLR(optimizer, lambda step: 1 / (1 + step)), 0.25 / 3),
        "MultiplicativeLR": (lambda optimizer: of.MultiplicativeLR(optimizer, lambda step: 0.5), 0.0625),
        "LinearLR": (lambda optimizer: of.LinearLR(optimizer, 0.5, total_iters=2), 0.25),
        "ReduceLROnPlateau": (partial(Plateau, factor=0.5, patience=0), 0.125),
        "ChainedScheduler": (lambda optimizer: of.ChainedScheduler([halving(optimizer), staying(optimizer)]), 0.0625),
        "SequentialLR": (lambda optimizer: of.SequentialLR(optimizer, [staying(optimizer)] * 2, milestones=[5]), 0.25),
        "SWALR": (lambda optimizer: swa.SWALR(optimizer, swa_lr=0.0625, anneal_epochs=1), 0.0625),
        "another scheduler first": (lambda optimizer: (staying(optimizer), halving(optimizer))[1], 0.0625),
    }


@program("OP-18", PROMISE, since="2.0", source="pytorch#89176; torch.optim.lr_scheduler.LRScheduler, which wraps step")
def a_scheduler_does_not_double_hooks(check: Check) -> None:
    """Under a learning rate scheduler step hooks are called exactly once a step, whichever was there first, until they
    are removed; the step gives what it gave, and the scheduler knows that it took place."""
    for name, (make, rate) in _schedulers().items():
        parameter, optimizer = _sgd()
        log: list[str] = []
        closure = partial(torch.tensor, 7.0)
        with all_optimizers() as register:
            handles = [
                register.register_optimizer_step_pre_hook(noting(log, "global pre")),
                optimizer.register_step_pre_hook(noting(log, "pre")),
            ]
            scheduler = make(optimizer)
            handles += [
                register.register_optimizer_step_post_hook(noting(log, "global post")),
                optimizer.register_step_post_hook(noting(log, "post")),
            ]
            given: list[Any] = []

            def steps(optimizer: Any = optimizer, scheduler: Any = scheduler, given: Any = given) -> None:
                for _ in range(2):
                    given.append(optimizer.step(closure))  # noqa: B023
                    scheduler.step()

            check.silent(f"{name}: steps of both in their order", steps, "step()")
            check.order(f"{name}: hooks in two steps", log, ["global pre", "pre", "post", "global post"] * 2)
            check.equal(f"{name}: what the steps give", given, [7.0, 7.0])
            check.equal(f"{name}: the rate after two steps", optimizer.param_groups[0]["lr"], rate)
            for handle in handles:
                handle.remove()
            log.clear()
            before = parameter.item()
            optimizer.step()
            check.order(f"{name}: hooks once they are removed", log, [])
            check.equal(f"{name}: that step", parameter, [before - 2 * rate])
        known = weakref.ref(optimizer)
        del optimizer, scheduler, steps, handles
        check.true(f"{name}: both are freed as soon as they are dropped", known() is None)
