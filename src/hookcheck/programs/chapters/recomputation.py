"""What is promised where hooks change what a checkpoint computes again in backward, or where less is computed again?

A non-reentrant region is run twice: what the second pass saves takes the place of what the first one saved. A hook in
the region that does something else in the second pass is found out by ``determinism_check``, as far as shapes, dtypes
and devices go; ``early_stop`` ends the second pass early, and selective checkpointing keeps the results of some
operations, which are then not computed again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check, NotOffered
from hookcheck.programs.checkpoints import (
    CHECKPOINT,
    NON_REENTRANT,
    REENTRANT,
    THROUGH,
    entries,
    leaf,
    scales,
    tool,
    variants,
)
from hookcheck.programs.nets import net
from hookcheck.programs.program import program

SELECTIVE = "torch.utils.checkpoint.create_selective_checkpoint_contexts"


def in_pass(number: int, change: Callable[[Any], Any]) -> Callable[..., Any]:
    """A forward hook that changes the output in the pass of that number, 1 or 2, and not in the other."""
    calls: list[None] = []

    def hook(module: Any, args: Any, output: Any) -> Any:
        calls.append(None)
        return change(output) if len(calls) == number else None

    return hook


# A chain that multiplies by 2 and 3 is called with 7: the last layer saves 14, which its weight's gradient is.
CHANGES: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "dtype": (lambda output: output.double(), [14]),
    "shape": (lambda output: output.repeat(2), [28]),  # 14 twice, summed to the shape of the weight
}
"""What a hook after the first layer does to its output, and what the gradient of the last weight then is."""


@program("CK-23", PROMISE, since="2.1", source=f"{CHECKPOINT}, determinism_check")
def a_second_pass_that_saves_otherwise_is_found_out(check: Check) -> None:
    """Backward raises a CheckpointError where a hook has the second pass save tensors of another shape or dtype, unless
    ``determinism_check`` is "none", or another number of them, where it is not ended early; other numbers alone are not
    found out."""
    checkpoint, error = variants()[NON_REENTRANT], tool("CheckpointError")
    for name, (change, gradient) in CHANGES.items():
        for asked in ("default", "none"):
            chain, x = scales(2, 3), leaf()
            chain[0].register_forward_hook(in_pass(2, change))
            y = checkpoint(chain, x, determinism_check=asked)
            if asked == "default":
                check.raises(f"another {name}", error, y.backward, "different metadata")
            else:
                check.works(f"another {name}, with no check", y.backward)
                check.equal(f"another {name}, with no check: gradient", chain[1].weight.grad, gradient)
    for name, number in (("more", 2), ("fewer", 1)):
        chain = scales(2, 3)
        weight = chain[0].weight
        chain[0].register_forward_hook(in_pass(number, lambda output, weight=weight: output * weight))
        with tool("set_checkpoint_early_stop")(False):
            y = checkpoint(chain, leaf())
        check.raises(f"{name} tensors", error, y.backward, "tensors")
    chain, x = scales(2, 3), leaf()
    chain[0].register_forward_hook(in_pass(2, lambda output: output * 10))
    check.works("other numbers", checkpoint(chain, x).backward)
    check.equal("other numbers: gradients", [x.grad, chain[1].weight.grad], [[6], [140]])
    check.raises("another word", ValueError, partial(checkpoint, chain, x, determinism_check="x"), "determinism_check")


def squared(output: Any) -> Any:
    """The square, as a product, which saves ``output`` twice."""
    return output * output


# The second pass ends with the fourth tensor that is saved, since the first one saved two for each layer. What a hook
# after the first layer has saved, 14 and 14, takes the places of the second weight, 3, and of what it multiplies, 14.
HIDDEN = {"after all that is needed": (1, [[6], [21], [14]]), "before that": (0, [[14 * 2], [14 * 7], [14]])}
"""Where more tensors are saved: by a hook after which layer, and the gradients of input and weights then."""

NOTICED: dict[str, tuple[int, Callable[[Any], Any], str]] = {
    "more of another shape": (2, lambda output: squared(output.repeat(2))[:1], "different metadata"),
    "fewer": (1, squared, "A different number of tensors"),
}
"""What is an error: in which pass a hook after the first layer has more saved, how, and what the error says."""


@program("CK-27", PIN, since="2.1", source=f"{CHECKPOINT}, early_stop and the warning 'silently incorrect gradients'")
def more_tensors_hide_behind_the_early_stop(check: Check) -> None:
    """Where the second pass is ended early, a hook that has it save more tensors is not found out: each takes the place
    of what the first pass saved by its number, so that gradients are silently wrong where it is of the same shape,
    dtype and device, and an error says so where it is not; fewer tensors are an error."""
    for form, checkpoint in variants().items():
        for name, (layer, gradients) in HIDDEN.items() if form != REENTRANT else ():
            chain, x = scales(2, 3), leaf()
            chain[layer].register_forward_hook(in_pass(2, squared))
            check.works(f"{form}, more {name}: backward", checkpoint(chain, x).backward)
            check.equal(f"{form}, more {name}", [x.grad, *(each.weight.grad for each in chain)], gradients)
        for name, (number, change, says) in NOTICED.items() if form != REENTRANT else ():
            chain = scales(2, 3)
            chain[0].register_forward_hook(in_pass(number, change))
            check.raises(f"{form}, {name}", tool("CheckpointError"), checkpoint(chain, leaf()).backward, says)


# The chain of 2 and 3, called with 7: each change, the output, and the gradients of the input and of the two weights.
ACTS: dict[str, tuple[str, Callable[..., Any], list[Any]]] = {
    # y = 2 * 3 * 70
    "pre-hook": ("register_forward_pre_hook", lambda module, args: (args[0] * 10,), [[420], [60], [210], [140]]),
    # z = 42, y = z**2, dy/dz = 84
    "forward hook": (
        "register_forward_hook",
        lambda module, args, output: output * output,
        [[1764], [84 * 6], [84 * 21], [84 * 14]],
    ),
}


@program("CK-24", PIN, since="2.1", source="torch.distributed._composable.checkpoint; pytorch#105090")
def hooks_beside_those_of_a_checkpoint(check: Check) -> None:
    """What hooks return that are on a module beside those that checkpoint it, registered before or after them and
    prepended or not, is used in its output and its gradients as without them; a forward hook is called again in
    backward if it was prepended after them."""
    for name, (register, hook, expected) in ACTS.items():
        for when in ("before", "after"):
            for prepend in (False, True):
                chain, x, calls = scales(2, 3), leaf(), []  # type: tuple[Any, Any, list[Any]]
                if when == "after":
                    _checkpointed(chain)
                noted = lambda *args, calls=calls, hook=hook: (calls.append(args), hook(*args))[1]  # noqa: E731
                getattr(chain, register)(noted, prepend=prepend)
                if when == "before":
                    _checkpointed(chain)
                y = chain(x)
                what = f"{name} {when}{', prepended' if prepend else ''}"
                check.works(f"{what}: backward", y.backward)
                check.equal(f"{what}: output and gradient of the input", [y, x.grad], expected[:2])
                check.equal(f"{what}: gradients of the weights", [each.weight.grad for each in chain], expected[2:])
                if name == "forward hook":  # what comes after the region is not computed again
                    check.calls(f"{what}: calls", len(calls), 2 if (when, prepend) == ("after", True) else 1)


def _checkpointed(module: Any, **options: Any) -> None:
    """Has hooks on a module checkpoint it."""
    if not torch.distributed.is_available():
        raise NotOffered("this torch has no torch.distributed")
    composable: Any = import_module("torch.distributed._composable")
    composable.checkpoint(module, **options)


STOPS = ((True, None, True), (False, None, False), (False, True, True), (True, False, False))
"""What ``early_stop`` is, what ``set_checkpoint_early_stop`` says for all (or nothing), and whether it ends early."""


@program("CK-26", PROMISE, since="2.9", source=f"{CHECKPOINT}, early_stop: 'can be overridden globally'")
def one_region_may_not_be_stopped(check: Check) -> None:
    """With ``early_stop=False`` the second pass of that region runs to its end, all hooks included; what
    ``set_checkpoint_early_stop`` says goes for every region."""
    checkpoint = variants()[NON_REENTRANT]
    if "early_stop" not in signature(tool("checkpoint")).parameters:
        raise NotOffered("checkpoint takes no early_stop")
    forms: dict[str, Callable[..., Any]] = {"checkpoint": checkpoint}
    if torch.distributed.is_available():
        forms["composable"] = lambda chain, x, early_stop: (_checkpointed(chain, early_stop=early_stop), chain(x))[1]
    for form, run in forms.items():
        for asked, for_all, stopped in STOPS:
            chain, x = scales(2, 3), leaf()
            log = entries(chain)
            name = f"{form}, early_stop={asked}{'' if for_all is None else f', and {for_all} for all'}"
            if for_all is None:
                y = run(chain, x, early_stop=asked)
            else:
                with tool("set_checkpoint_early_stop")(for_all):
                    y = run(chain, x, early_stop=asked)
            log.clear()
            y.backward()
            check.order(f"{name}: hooks in backward", log, THROUGH[:-1] if stopped else THROUGH)
            check.equal(f"{name}: gradient", x.grad, [6])


HALF = (math.sin(0.5), math.cos(0.5))
"""The sine and the cosine of what exp(sin(x)) is called with."""


@program("CK-25", PROMISE, since="2.5", source=f"{SELECTIVE}; torch.utils.checkpoint.CheckpointPolicy")
def what_is_selectively_saved_is_not_computed_again(check: Check) -> None:
    """In a region of which some results are saved, hooks are called in both passes and what they return is used; an
    operation whose result must be saved is run in the first pass alone; and a hook that writes to such a result is an
    error, unless that is allowed."""
    if not hasattr(import_module("torch.utils.checkpoint"), "create_selective_checkpoint_contexts"):
        raise NotOffered("this torch has no selective checkpointing")
    for form, asked in _policies().items():
        for factor in (1, 2):
            log, x = [], leaf(0.5)  # type: tuple[list[Any], Any]
            region = _sine_and_exponential(log, (lambda output: output * 2) if factor == 2 else lambda output: None)
            name = f"{form}, {'a hook that looks on' if factor == 1 else 'a hook that doubles'}"
            with _noting_operations(log):
                y = _selective(region, x, asked)
            check.order(f"{name}: the first pass", log, ["sin", "hook", "pre-hook", "exp"])
            check.equal(f"{name}: output", y, [math.exp(factor * HALF[0])])
            log.clear()
            with _noting_operations(log):
                y.backward()
            check.order(f"{name}: the second pass", log[:3], ["hook", "pre-hook", "exp"])
            of_output = math.exp(factor * HALF[0])  # of what the hook made of the sine, times the factor
            of_input = of_output * factor * HALF[1]
            check.equal(f"{name}: calls of the full backward hook", log[3:], [[[of_input], [of_output]]])
            check.equal(f"{name}: gradient", x.grad, [of_input])
        y = _selective(_sine_and_exponential([], lambda output: None), leaf(0.5), asked)
        check.works(f"{form}: a backward that keeps the graph", partial(y.backward, retain_graph=True))
        check.raises(f"{form}: a second one", RuntimeError, y.backward, "backward an extra time")
        y = _selective(_sine_and_exponential([], lambda output: output.mul_(2)), leaf(0.5), asked)
        check.raises(f"{form}, a hook that writes", RuntimeError, y.backward, "has been mutated")
        writing = _sine_and_exponential([], lambda output: output.mul_(2))
        y = _selective(writing, leaf(0.5), asked, allow_cache_entry_mutation=True)
        check.works(f"{form}, a hook that writes, as is allowed", y.backward)


def _policies() -> dict[str, Any]:
    """The ways to say that the results of sin are saved."""
    must_save, may_recompute = tool("CheckpointPolicy").MUST_SAVE, tool("CheckpointPolicy").PREFER_RECOMPUTE
    sine = torch.ops.aten.sin.default

    def policy(context: Any, operation: Any, *args: Any, **kwargs: Any) -> Any:
        return must_save if operation is sine else may_recompute

    return {"a list": [sine], "a policy": policy}


@program("CK-38", PIN, since="2.1", source="torch.utils.checkpoint, 'compute the gradient inside'; pytorch#102223")
def a_region_that_asks_for_gradients(check: Check) -> None:
    """A non-reentrant region that asks for a gradient inside runs once more for that, until it has what that needs, and
    once more in the backward outside; hooks of its modules are called in each pass with the same numbers, and those on
    its input get the gradient of the gradient."""
    for way, entered, left in (("checkpointed", 3, 2), ("as it is", 1, 1)):
        module, log, gradients = net(lambda module, x: x**3), list[Any](), list[Any]()
        module.register_forward_pre_hook(lambda module, args, log=log: log.append(("pre-hook", args[0].item())))
        module.register_forward_hook(lambda module, args, output, log=log: log.append(("hook", output.item())))

        def region(x: Any, module: Any = module) -> Any:
            return torch.autograd.grad(module(x), x, create_graph=True)[0]

        x = torch.tensor(2.0, requires_grad=True)
        x.register_hook(lambda gradient, gradients=gradients: gradients.append(gradient.item()))
        y = variants()[NON_REENTRANT](region, x) if way == "checkpointed" else region(x)
        gradients.clear()  # the gradient inside is one with respect to x as well
        y.backward()
        check.equal(f"{way}: 3x²", y, 12.0)
        check.equal(f"{way}: 6x", x.grad, 12.0)
        check.order(f"{way}: hooks on the input in the backward outside", gradients[-1:], [12.0])
        for kind, due in (("pre-hook", [2.0] * entered), ("hook", [8.0] * left)):  # x³ saves x alone, before the hook
            check.order(f"{way}: {kind}s", [value for name, value in log if name == kind], due)
    with tool("set_checkpoint_early_stop")(False):
        x = torch.tensor(2.0, requires_grad=True)
        slope = lambda x: torch.autograd.grad(x**3, x, create_graph=True)[0]  # noqa: E731
        y = check.works("checkpointed, to its end", lambda: variants()[NON_REENTRANT](slope, x))
        if y is not None:
            check.works("checkpointed, to its end: the backward outside", y.backward)
            check.equal("checkpointed, to its end: 6x", x.grad, 12.0)


def _selective(region: Any, x: Any, asked: Any, **options: Any) -> Any:
    """The output of a region of which some results are saved."""
    contexts = partial(tool("create_selective_checkpoint_contexts"), asked, **options)
    return variants()[NON_REENTRANT](region, x, context_fn=contexts)


def _sine_and_exponential(log: list[Any], act: Callable[[Any], Any]) -> Any:
    """exp(sin(x)) as two modules, with hooks that note their calls; the one between them acts on the sine."""
    sine, exponential = net(lambda module, x: x.sin()), net(lambda module, x: x.exp())
    sine.register_forward_hook(lambda module, args, output: (log.append("hook"), act(output))[1])
    exponential.register_forward_pre_hook(lambda module, args: log.append("pre-hook"))
    sine.register_full_backward_hook(lambda module, gi, go: log.append([gi[0].tolist(), go[0].tolist()]))
    return nn.Sequential(sine, exponential)


def _noting_operations(log: list[Any]) -> Any:
    """Notes each sin and each exp that is run while it is open."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Noting(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in (torch.ops.aten.sin.default, torch.ops.aten.exp.default):
                log.append(func.overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    return Noting()
