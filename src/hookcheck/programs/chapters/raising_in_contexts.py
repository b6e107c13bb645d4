"""What is left where a hook raises in a context of torch? Nothing: the context ends, and the next run is right.

Some contexts are around a call and its backward, others make the call themselves, and have to leave a level, a mode or
a setting on the way out of an exception. A hook raises once, in forward or in backward; then the same is run again, in
the context and outside of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.chapters.ambient_state import MODES, spying
from hookcheck.programs.check import Check
from hookcheck.programs.checkpoints import tool
from hookcheck.programs.nets import leaf, weighted
from hookcheck.programs.program import program

Way = Callable[[Any, Any], Any]
"""Runs a net on a leaf, forward and backward, and gives the gradient."""


class Deliberate(Exception):
    """What a hook raises."""


def outside(net: Any, x: Any, call: Callable[..., Any] | None = None) -> Any:
    """The gradient without a context, or with what makes the ``call`` of the net."""
    y = call(net, x) if call else net(x)
    y.sum().backward()
    return x.grad


def around(manager: Callable[[], AbstractContextManager[Any]]) -> Way:
    """Call and backward in a context."""

    def run(net: Any, x: Any) -> Any:
        with manager():
            return outside(net, x)

    return run


def packing(log: list[Any]) -> AbstractContextManager[Any]:
    """Hooks on saved tensors, of which the first notes that it was called."""
    hooks: AbstractContextManager[Any] = torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: [log.append("pack"), tensor][1], lambda tensor: tensor
    )
    return hooks


def of_checkpoints() -> dict[str, bool]:
    """Those that set something for checkpoints, which came with 2.1, and what they are to set."""
    offered = vars(import_module("torch.utils.checkpoint"))
    names = {"set_checkpoint_early_stop": False, "set_checkpoint_debug_enabled": True}
    return {name: value for name, value in names.items() if name in offered}


def contexts(log: list[Any], modes: dict[str, Any]) -> dict[str, Way]:
    """Those around a call and its backward."""
    graph, profiler = torch.autograd.graph, torch.autograd.profiler
    managers: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        "autocast": partial(torch.autocast, "cpu"),
        "detect_anomaly": torch.autograd.detect_anomaly,
        "one thread": partial(torch.autograd.set_multithreading_enabled, False),
        "default device": partial(torch.device, "meta"),
        "saved_tensors_hooks": partial(packing, log),
        "disable_saved_tensors_hooks": partial(graph.disable_saved_tensors_hooks, "not now"),
        "allow_mutation_on_saved_tensors": graph.allow_mutation_on_saved_tensors,
        "dual_level": import_module("torch.autograd.forward_ad").dual_level,
        "record_function": partial(profiler.record_function, "a name"),
        **{name: partial(tool(name), value) for name, value in of_checkpoints().items()},
        **modes,
    }
    return {name: around(manager) for name, manager in managers.items()}


def callers() -> dict[str, Way]:
    """Those that make the call, and of transforms the backward too."""
    func, checkpoint = torch.func, tool("checkpoint")
    return {
        "checkpoint": partial(outside, call=partial(checkpoint, use_reentrant=False)),
        "checkpoint, reentrant": partial(outside, call=partial(checkpoint, use_reentrant=True)),
        "functional_call": partial(outside, call=lambda net, x: func.functional_call(net, {}, (x,))),
        "vmap": partial(outside, call=lambda net, x: torch.vmap(net)(x[None])),
        "grad": lambda net, x: func.grad(lambda x: net(x).sum())(x),
        "vjp": lambda net, x: func.vjp(net, x)[1](torch.ones(1))[0],
        "jvp": lambda net, x: func.jvp(net, (x,), (torch.ones(1),))[1],
        "jacrev": lambda net, x: func.jacrev(lambda x: net(x).sum())(x),
        "grad of grad": lambda net, x: func.grad(lambda x: func.grad(lambda x: (net(x) * x).sum())(x).sum())(x) / 2,
    }


def settings(log: list[Any], modes: dict[str, Any]) -> dict[str, Any]:
    """What is set now, and whether anything of a context still is."""
    one = leaf(1.0)
    before = len(log)
    one.exp()
    packed, log[before:] = len(log) - before, []
    checkpoints = vars(import_module("torch.utils.checkpoint"))
    with torch.device("cpu"):
        dual = import_module("torch.autograd.forward_ad")
        return {
            "gradients are recorded": torch.is_grad_enabled(),
            "inference": torch.is_inference_mode_enabled(),
            "autocast": torch.is_autocast_cpu_enabled(),
            "anomalies": torch.is_anomaly_enabled(),
            "threads": getattr(torch._C, "_is_multithreading_enabled", bool)(),
            "packed": packed,
            "early stop": checkpoints.get("_enable_checkpoint_early_stop"),
            "debug": checkpoints.get("_checkpoint_debug_enabled"),
            "a level": dual._current_level,
            "a transform": torch._C._functorch.peek_interpreter_stack() is not None,
            **{name: mode.sees() for name, mode in modes.items()},
        }


def raising(net: Any, place: str) -> Any:
    """Registers the hook that raises, in forward or in backward."""

    def refuse(*_: Any) -> Any:
        raise Deliberate

    if place == "forward pre-hook":
        return net[1].register_forward_pre_hook(refuse)
    if place == "forward hook":
        return net[1].register_forward_hook(refuse)

    def register(module: Any, args: Any, output: Any) -> None:
        if output.requires_grad:
            output.register_hook(refuse)

    return net[1].register_forward_hook(register)


def attempted(act: Callable[[], Any]) -> str:
    """The name of what ``act`` raises."""
    try:
        act()
    except Exception as error:
        return type(error).__name__
    return "nothing"


@program("SM-03", PIN, since="2.0", source="torch.autograd.graph; torch.func; torch.utils.checkpoint")
def hooks_raise_in_contexts(check: Check) -> None:
    """Where a hook raises in a context of torch, in forward or in backward, that error comes out, nothing of the
    context is left, and the next run is right, in the context and outside of it."""
    log: list[Any] = []
    modes = {name: spying(getattr(import_module(module), name), method) for name, module, method in MODES}
    ways = {**contexts(log, modes), **callers()}
    for way, run in ways.items():
        for place in ("forward pre-hook", "forward hook", "hook on a result"):
            if way in ("vmap", "jvp") and place == "hook on a result":
                continue  # what is computed in them requires no grad
            net = nn.Sequential(weighted(2.0), weighted(3.0))
            calls: list[str] = []
            net[0].register_forward_hook(lambda module, args, output, calls=calls: calls.append("forward"))
            expected = settings(log, modes)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of where the error arose, and of anomaly mode itself
                with raising(net, place):
                    raised = attempted(partial(run, net, leaf(1.0)))
                check.equal(f"{way}, {place}: what comes out", raised, "Deliberate")
                check.equal(f"{way}, {place}: what is set after it", settings(log, modes), expected)
                calls.clear()
                check.equal(f"{way}, {place}: the next gradient", run(net, leaf(1.0)), [6.0])
            net[1].register_full_backward_hook(lambda module, gi, go, calls=calls: calls.append("backward"))
            check.equal(f"{way}, {place}: a gradient outside", outside(net, leaf(1.0)), [6.0])
            twice = ["forward"] * (2 if way.startswith("checkpoint") else 1)
            check.order(f"{way}, {place}: hooks of both", calls, [*twice, "forward", "backward"])
