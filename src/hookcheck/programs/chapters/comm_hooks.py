"""What do the comm hooks that torch has ready make of gradients, and what runs by hooks of a bucket besides?

Each is a way to reduce: by a mean, in fewer bits or of lower rank, or not at all. An optimizer may step a parameter as
soon as its bucket is reduced. ``replicate`` hands comm hooks to a DistributedDataParallel that it makes itself.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.host_changes import offered
from hookcheck.programs.nets import leaf, net, weighted
from hookcheck.programs.processes import of_two, process_group
from hookcheck.programs.program import program
from hookcheck.programs.reducing import DISTRIBUTED, distributed, future_of, reducing
from hookcheck.programs.watching import noting

HOOKS = "torch.distributed.algorithms.ddp_comm_hooks"

FINE = 1 + 3 * 2**-13
"""A number that float32 has; the nearest one of float16, and of bfloat16, is 1."""


def ready(name: str) -> Any:
    """A module of torch's comm hooks."""
    return import_module(f"{HOOKS}.{name}")


def registering() -> dict[str, Callable[[Any], Any]]:
    """By name, the ways to reduce that run on the CPU: how each is registered. Those that
    quantize are left out up to 2.14: they take the futures of all_gather for what gloo does not give."""
    default, power, local = ready("default_hooks"), ready("powerSGD_hook"), ready("post_localSGD_hook")
    builtin = torch.distributed.BuiltinCommHookType

    def by(hook: Any, state: Any = lambda: None) -> Callable[[Any], Any]:
        return lambda wrapper: wrapper.register_comm_hook(state(), hook)

    def powers() -> Any:
        return power.PowerSGDState(None, 1, start_powerSGD_iter=2)

    def locally(start: int) -> Any:
        return lambda: local.PostLocalSGDState(None, None, start, post_local_gradient_allreduce=False)

    quantized = ready("quantization_hooks")
    return {
        "no comm hook": lambda wrapper: None,
        "allreduce": by(default.allreduce_hook),
        "fp16": by(default.fp16_compress_hook),
        "fp16 wrapper": by(default.fp16_compress_wrapper(default.allreduce_hook)),
        "PowerSGD": by(power.powerSGD_hook, powers),
        "local SGD, to come": by(local.post_localSGD_hook, locally(9)),
        "local SGD, started": by(local.post_localSGD_hook, locally(0)),
        "noop": by(ready("debugging_hooks").noop_hook),
        "built-in allreduce": lambda wrapper: wrapper._register_builtin_comm_hook(builtin.ALLREDUCE),
        "built-in fp16": lambda wrapper: wrapper._register_builtin_comm_hook(builtin.FP16_COMPRESS),
        **({"quantized": by(quantized.quantization_pertensor_hook)} if offered((2, 15)) else {}),
    }


@program("DD-13", PROMISE, since="1.13", source=f"{HOOKS}.default_hooks, powerSGD_hook, post_localSGD_hook")
def ready_comm_hooks_alone(check: Check) -> None:
    """In one process comm hooks of torch leave gradients as they are, but for the bits and the ranks that they cut: a
    compressing wrapper hands its hook a bucket of 16 bits; states count backwards, and not buckets."""
    with process_group(check):
        for name, register in registering().items():
            module = weighted(2.0)
            wrapper = distributed(module)
            register(wrapper)
            wrapper(leaf(FINE)).backward()
            check.equal(f"{name}: gradient", module.weight.grad, 1.0 if "fp16" in name else FINE)
        log: list[Any] = []
        inner = lambda state, bucket: log.append((state, bucket.buffer().dtype)) or future_of(2 * bucket.buffer())  # noqa: E731
        module = weighted(2.0)
        wrapper = distributed(module)
        wrapper.register_comm_hook("a state", ready("default_hooks").fp16_compress_wrapper(inner))
        wrapper(leaf(FINE)).backward()
        check.true("state and numbers within a wrapper", log == [("a state", torch.float16)], "argument")
        check.equal("gradient after a wrapper", [module.weight.grad, module.weight.grad.dtype], [2.0, torch.float32])
        _counts(check)


def _counts(check: Check) -> None:
    """States what the states of comm hooks count, of backwards with two buckets, and what a rank of one can say.

    Where PowerSGD compresses there is one bucket: its hook waits in a thread of gloo, which has two of them, for what
    another one must do.
    """
    power, local = ready("powerSGD_hook"), ready("post_localSGD_hook")
    states = {
        "PowerSGD": (power.powerSGD_hook, power.PowerSGDState(None, 1, start_powerSGD_iter=9), 1e-6, 4),
        "PowerSGD, compressing": (power.powerSGD_hook, power.PowerSGDState(None, 1, start_powerSGD_iter=2), 1, 4),
        "local SGD": (
            local.post_localSGD_hook,
            local.PostLocalSGDState(None, torch.distributed.group.WORLD, 3),
            1e-6,
            3,
        ),
    }
    for name, (hook, state, megabytes, count) in states.items():
        module = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False))
        for part in module:
            nn.init.ones_(part.weight)
        wrapper = distributed(module, bucket_cap_mb=megabytes)
        wrapper.register_comm_hook(state, hook)
        for _ in range(4):
            module.zero_grad()
            wrapper(torch.ones(1, 8)).sum().backward()
        check.equal(f"{name}: backwards that it counts", state.iter, count)
        # each weight is 1: all entries of the gradients are 8, which is of rank one
        gradients = [[round(part.weight.grad[i, j].item(), 3) for i, j in ((0, 0), (7, 7))] for part in module]
        check.equal(f"{name}: gradients", gradients, [[8.0, 8.0], [8.0, 8.0]])


def _in_two(rank: int) -> dict[str, float]:
    """By way to reduce, the gradient in one of two processes, of which the first has 3 and the other 5."""
    gradients: dict[str, float] = {}
    for name, register in registering().items():
        module = weighted(2.0)
        wrapper = distributed(module)
        register(wrapper)
        wrapper(leaf((3.0, 5.0)[rank])).backward()
        gradients[name] = round(module.weight.grad.item(), 1)  # what quantizes is a little off
    return gradients


@program(
    "DD-19", PROMISE, since="1.13", source=f"{HOOKS}.default_hooks, 'divides it by the process group size'", alone=True
)
def ready_comm_hooks_in_two_processes(check: Check) -> None:
    """With two processes comm hooks of torch leave the mean of both gradients, also in fewer bits, save for those that
    do not reduce."""
    for name, gradient in of_two(check, _in_two).items():
        apart = name in ("noop", "local SGD, started")
        check.equal(f"{name}: gradient", gradient, 3.0 if apart else 4.0)


@program("DD-12", PROMISE, since="1.13", source=f"{HOOKS}.powerSGD_hook.batched_powerSGD_hook")
def batched_power_sgd_compresses(check: Check) -> None:
    """``batched_powerSGD_hook`` compresses whole buckets once it has started; gradients of rank one stay exact."""
    power = ready("powerSGD_hook")
    with process_group(check):
        module = net(lambda module, x: module.weight * x, weight=nn.Parameter(torch.full((4,), 2.0)))
        wrapper = distributed(module)
        wrapper.register_comm_hook(power.PowerSGDState(None, 1, start_powerSGD_iter=2), power.batched_powerSGD_hook)

        def backward() -> Any:
            module.weight.grad = None
            wrapper(leaf(3.0)).sum().backward()
            return module.weight.grad.tolist()

        for number in (1, 2, 3):  # the third is compressed: four equal numbers are a square matrix of rank one
            gradient = check.works(f"backward {number}", backward)
            if gradient is not None:
                check.equal(f"gradient {number}", [round(entry, 4) for entry in gradient], [3.0] * 4)


@program("DD-15", PIN, since="1.13", source=f"{HOOKS}.optimizer_overlap_hooks._hook_then_optimizer")
def an_optimizer_steps_by_a_comm_hook(check: Check) -> None:
    """An optimizer behind a comm hook gets each parameter with its gradient once its bucket is reduced, or those alone
    that are asked for; one that cannot step a parameter is refused."""
    overlap = ready("optimizer_overlap_hooks")

    class Stepping:
        def __init__(self) -> None:
            self.steps: list[Any] = []

        def step_param(self, parameter: Any, gradient: Any) -> None:
            log.append("step")
            self.steps.append((names[id(parameter)], gradient.item()))

    with process_group(check):
        for which, due in (("all", [("a", 30.0), ("b", 20.0)]), ("one", [("b", 20.0)])):
            module = net(lambda module, x: module.b * (module.a * x), a=2.0, b=3.0)
            names = {id(parameter): name for name, parameter in module.named_parameters()}
            optimizer, log = Stepping(), list[Any]()
            state = overlap._OptimizerHookState(optimizer, None if which == "all" else [module.b])
            wrapper = distributed(module)
            tenfold = lambda state, bucket, log=log: log.append("reduced") or future_of(bucket.buffer().mul_(10))  # noqa: E731
            wrapper.register_comm_hook(None, overlap._hook_then_optimizer(tenfold, state))
            wrapper(leaf(1.0)).backward()
            check.order(f"{which}: parameters, gradients", sorted(optimizer.steps), due)
            check.order(f"{which}: bucket and steps", log, ["reduced", *["step"] * len(due)])
        refused = lambda: overlap._OptimizerHookState(object())  # noqa: E731
        check.raises("what steps no parameter", ValueError, refused, "must implement method step_param")


@program("DD-14", PIN, since="2.6", source="torch.distributed._composable.replicate; undocumented")
def replicate_reduces_by_hooks(check: Check) -> None:
    """A replicated module reduces by its comm hook, what is ignored left out, and not while it is to accumulate;
    hooks of the module run once a call, with its arguments, and after an error nothing is left of the call."""
    replicate = import_module("torch.distributed._composable.replicate").replicate
    with process_group(check):
        failing = replicate(net(lambda module, x: 1 / 0, a=2.0))
        check.raises("an error", ZeroDivisionError, lambda: failing(leaf(3.0)), "division")
        check.true("nothing runs any more after an error", _running_after(failing) is None)
        ignored, log, seen = weighted(5.0), list[Any](), list[Any]()
        module = net(lambda module, x, *, y: module.a * x + module.ignored(y), a=2.0, ignored=ignored)
        module.register_forward_pre_hook(noting(seen, "before"))
        module = replicate(module, ignored_modules=[ignored])
        module.register_forward_hook(noting(seen, "after"))
        module.register_full_backward_hook(noting(seen, "backward"))
        module.register_comm_hook(None, reducing(log, 10.0))
        module(leaf(3.0), y=leaf(4.0)).backward()
        check.order("hooks of the module", seen, ["before", "after", "backward"])
        check.order("buckets", log, [[3.0]])
        check.equal("gradients", [module.a.grad, ignored.weight.grad], [30.0, 4.0])
        module.set_requires_gradient_sync(False)
        module(leaf(3.0), y=leaf(4.0)).backward()
        check.order("buckets while it is to accumulate", log, [[3.0]])
        check.equal("gradients then", [module.a.grad, ignored.weight.grad], [33.0, 8.0])
        module.set_requires_gradient_sync(True)
        module(leaf(3.0), y=leaf(4.0)).backward()
        check.order("buckets after that", log, [[3.0], [36.0]])
        unused, log = replicate(net(lambda module, x: module.a * x, a=2.0, b=5.0), find_unused_parameters=True), []
        unused.register_comm_hook(state=None, hook=reducing(log, 10.0))
        for count in (1, 2):
            check.works(f"call {count} with a parameter that is not used", lambda: unused(leaf(3.0)).backward())
        check.calls("buckets with a parameter that is not used", len(log), 2)
        check.equal("gradients then, with 30 from the first call", [unused.a.grad, unused.b.grad], [330.0, None])


def _running_after(failing: Any) -> Any:
    """What DistributedDataParallel takes for running after a call that fails; then nothing is."""
    kind = nn.parallel.DistributedDataParallel
    with suppress(ZeroDivisionError):
        failing(leaf(3.0))
    active, kind._active_ddp_module = kind._active_ddp_module, None
    return active


@program("DD-11", PIN, since="2.6", source=f"{DISTRIBUTED}, 'delay_all_reduce_named_params'")
def delayed_parameters_keep_their_hooks(check: Check) -> None:
    """A parameter whose reduction is delayed keeps its hooks, as that has after which it comes: they are called once in
    each backward, with right gradients; such a parameter is in no bucket."""
    with process_group(check):
        for time in ("before", "after"):
            first, second, log, buckets = weighted(2.0), weighted(3.0), list[Any](), list[Any]()
            module = nn.Sequential(first, second)

            def register(log: Any = log, parts: Any = (first, second)) -> None:
                for name, part in zip(("delayed", "other"), parts):
                    part.weight.register_hook(lambda grad, name=name: log.append((name, grad.item())))

            if time == "before":
                register()
            wrapper = distributed(
                module,
                delay_all_reduce_named_params=[("0.weight", first.weight)],
                param_to_hook_all_reduce=first.weight,
            )
            wrapper.register_comm_hook(None, reducing(buckets))
            if time == "after":
                register()
            module.register_forward_hook(noting(log, "forward"))
            for _ in range(2):
                first.weight.grad = second.weight.grad = None
                log.clear()
                wrapper(leaf(1.0)).backward()
                # 3·2·x: the first weight gets 3, the second one 2
            check.order(f"{time}: hooks", log, ["forward", ("other", 2.0), ("delayed", 3.0)])
            check.order(f"{time}: buckets", buckets, [[2.0], [2.0]])
            check.equal(f"{time}: gradients", [first.weight.grad, second.weight.grad], [3.0, 2.0])
