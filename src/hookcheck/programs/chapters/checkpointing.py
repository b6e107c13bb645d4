"""What does activation checkpointing do to the hooks of the modules whose forward it runs again in backward?

``torch.utils.checkpoint.checkpoint(function, *args)`` does not keep what ``function`` saves for backward, but runs it
again in backward. The reentrant variant runs the first pass without grad mode and a backward of its own inside of
backward; the non-reentrant one, ``use_reentrant=False``, stands on hooks for saved tensors, and stops the second pass
as soon as it has what it needs. Forward hooks inside run in both passes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.garbage import Note, survivors
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
from hookcheck.programs.host_changes import offered
from hookcheck.programs.program import program

Gradient = Callable[[Any, Any], Any]
"""Goes backward from an output to an input."""


@program("DS-13", PROMISE, since="2.1", source=f"{CHECKPOINT}, note on the two variants")
def only_the_reentrant_variant_recomputes_all(check: Check) -> None:
    """The reentrant variant recomputes everything in backward; the other one stops as soon as it has what it needs,
    unless told otherwise."""
    for name, checkpoint in variants().items():
        net = scales(2, 3)
        log = entries(net)
        y = checkpoint(net, leaf())
        check.order(f"forward, {name}", log, THROUGH)
        log.clear()
        y.backward()
        # The last thing needed is what the last layer saves: it is reached inside of that layer.
        check.order(f"backward, {name}", log, THROUGH if name == REENTRANT else THROUGH[:-1])
    net = scales(2, 3)
    log = entries(net)
    with tool("set_checkpoint_early_stop")(False):
        y = variants()[NON_REENTRANT](net, leaf())
    log.clear()
    y.backward()
    check.order("backward without early stop", log, THROUGH)


@program("DS-14", PROMISE, since="1.7", source=f"{CHECKPOINT}, note on the two variants")
def the_reentrant_variant_supports_backward_alone(check: Check) -> None:
    """The reentrant variant runs the first forward without grad mode, and supports ``backward`` without ``inputs``
    alone; the other records the first forward, and supports every way of going backward."""
    grad_modes(check)
    ways: dict[str, Gradient] = {"grad": lambda y, x: torch.autograd.grad(y, x)[0]}
    if "inputs" in inspect.signature(torch.autograd.backward).parameters:
        ways["backward with inputs"] = lambda y, x: (y.backward(inputs=[x]), x.grad)[1]
    for name, checkpoint in variants().items():
        for way, gradient in ways.items():
            if name != REENTRANT:
                check.equal(f"{way}, {name}", differentiated(gradient, checkpoint), [2])
            else:
                is_refused(check, f"{way}, {name}", way, gradient, checkpoint)
    act = partial(variants()[REENTRANT], torch.exp, torch.ones(1))
    check.warns("what requires no grad, reentrant", UserWarning, act, "None of the inputs have requires_grad=True")


def grad_modes(check: Check) -> None:
    """States in which grad mode each variant runs the two forwards."""
    for name, checkpoint in variants().items():
        modes: list[bool] = []
        net = scales(2)
        net[0].register_forward_pre_hook(lambda module, args, modes=modes: modes.append(torch.is_grad_enabled()))
        x = leaf()
        y = checkpoint(net, x)
        check.equal(f"grad mode in forward, {name}", modes, [name != REENTRANT])
        y.backward()
        check.equal(f"grad mode in forward and backward, {name}", modes, [name != REENTRANT, True])
        check.equal(f"gradient, {name}", x.grad, [2])


def is_refused(check: Check, says: str, way: str, gradient: Gradient, checkpoint: Any) -> None:
    """States that a way of going backward is refused, and that a plain backward works after it."""
    with ThreadPoolExecutor(1) as thread:  # what a refusal may leave behind is the thread's
        check.raises(says, RuntimeError, thread.submit(differentiated, gradient, checkpoint).result, "heckpoint")
        second = thread.submit(differentiated, lambda y, x: y.backward(), checkpoint)
        check.works(f"backward after {way} was refused", second.result)


def differentiated(gradient: Gradient, checkpoint: Any) -> Any:
    """What ``gradient`` makes of the output of a checkpoint and its input."""
    x = leaf()
    return gradient(checkpoint(lambda x: 2 * x, x), x)


@program("ST-24", PROMISE, since="2.14", source=f"{CHECKPOINT}, respect_saved_tensors_hooks")
def hooks_see_what_is_selectively_saved_if_asked(check: Check) -> None:
    """What selective checkpointing saves goes around saved-tensor hooks unless ``respect_saved_tensors_hooks`` is True;
    without an answer a FutureWarning announces that this will change."""

    def gradient(**asked: Any) -> tuple[Any, list[Any]]:
        policy = tool("CheckpointPolicy").MUST_SAVE
        contexts = partial(tool("create_selective_checkpoint_contexts"), lambda *args, **kwargs: policy)
        packed: list[Any] = []

        def pack(tensor: Any) -> Any:
            packed.append(tensor.tolist())
            return tensor.detach()

        x = leaf(2.0)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            y = tool("checkpoint")(lambda x: (x * 3).exp().sin(), x, use_reentrant=False, context_fn=contexts, **asked)
        y.backward()
        return x.grad, packed

    e = torch.tensor([6.0]).exp()
    expected = (e.cos() * e * 3).tolist()  # d sin(exp(3x))
    silent, unasked = check.warns("a hook in scope, no answer", FutureWarning, gradient, "respect_saved_tensors_hooks")
    check.equal("gradient, no answer", silent, expected)
    refused, without = check.silent("a hook in scope, False", lambda: gradient(respect_saved_tensors_hooks=False))
    check.equal("gradient, False", refused, expected)
    check.equal("packed without an answer as with False", unasked, without)
    respected, packed = check.silent("a hook in scope, True", lambda: gradient(respect_saved_tensors_hooks=True))
    check.equal("gradient, True", respected, expected)
    check.equal(
        "the exponential was packed with True, and not with False",
        [e.tolist() in packed, e.tolist() in without],
        [True, False],
    )


def shared_parameter(checkpoint: Any) -> tuple[list[Any], Any]:
    """What a hook on a parameter gets that two checkpointed regions share, and the gradient: 2 * 7 and 3 * 7."""
    weight, x, seen = leaf(5.0), leaf(), []
    weight.register_hook(lambda gradient: seen.append(gradient.tolist()))
    y = checkpoint(lambda x: 2 * weight * x, x) + checkpoint(lambda x: 3 * weight * x, x)
    y.backward()
    return seen, weight.grad


def factor_removed(checkpoint: Any) -> tuple[Any, Any]:
    """The output of 3 x, that a forward hook makes ten times as much until backward begins, and the gradient."""
    x, net = leaf(), scales(3)
    handle = net[0].register_forward_hook(lambda module, args, output: output * 10)
    y = checkpoint(net, x)
    handle.remove()
    y.backward()
    return y, x.grad


@program("U-17", PIN, since="1.7", source=CHECKPOINT)
def what_hooks_see_of_the_two_variants(check: Check) -> None:
    """Reentrant: a hook on a shared parameter is called for each region, forward hooks are called in both passes, and
    one that is removed before backward has no part in the gradient. Otherwise: the hook is called once, the forward
    hook of the last layer too, and what was run is what is differentiated."""
    for name, checkpoint in variants().items():
        net = scales(2, 3)
        log = entries(net)
        checkpoint(net, leaf()).backward()
        check.calls(f"forward hook of the first layer, {name}", log.count("-0"), 2)
        check.calls(f"forward hook of the last layer, {name}", log.count("-1"), 2 if name == REENTRANT else 1)
        seen, gradient = shared_parameter(checkpoint)
        parts = [[14], [21]] if name == REENTRANT else [[35]]
        check.equal(f"what the hook of a shared parameter gets, {name}", sorted(seen), parts)
        check.equal(f"gradient of a shared parameter, {name}", gradient, [35])
        factor = 3 if name == REENTRANT else 30
        removed = check.works(f"removing a forward hook before backward, {name}", partial(factor_removed, checkpoint))
        check.equal(f"gradient after the forward hook was removed, {name}", removed and removed[1], [factor])


@program("CK-14", PROMISE, since="1.7", source="pytorch#81296")
def a_shared_parameter_has_one_gradient(check: Check) -> None:
    """A hook on a parameter that two reentrant regions share is called once, with the sum of the gradients."""
    seen, gradient = shared_parameter(variants()[REENTRANT])
    check.equal("what the hook gets", seen, [[35]])
    check.equal("gradient", gradient, [35])


def non_reentrant() -> Callable[..., Any]:
    """``checkpoint`` in its non-reentrant form."""
    checkpoint = tool("checkpoint")
    if "use_reentrant" not in inspect.signature(checkpoint).parameters:
        raise NotOffered("checkpoint has one form only, the reentrant one")
    return partial(checkpoint, use_reentrant=False)


@program("CK-15", PROMISE, since="1.11", source="pytorch#69027")
def a_shared_parameter_has_one_gradient_otherwise(check: Check) -> None:
    """A hook on a parameter that two non-reentrant regions share is called once, with the sum of the gradients."""
    seen, gradient = shared_parameter(non_reentrant())
    check.equal("what the hook gets", seen, [[35]])
    check.equal("gradient", gradient, [35])


@program("CK-16", PIN, since="1.7", source="pyvene#242")
def what_was_run_is_differentiated(check: Check) -> None:
    """The gradient through a reentrant region is that of what was run, with a forward hook that is removed since."""
    output, gradient = factor_removed(variants()[REENTRANT])
    check.equal("output", output, [210])
    check.equal("gradient", gradient, [30])


@program("CK-17", PROMISE, since="1.8", source="pytorch#69027")
def a_full_hook_inside_fires_once_a_backward(check: Check) -> None:
    """A full backward hook of a module in a checkpointed region is called once a backward, with the right gradients."""
    for name, checkpoint in variants().items():
        net = scales(2, 3)
        calls: list[Any] = []
        net[0].register_full_backward_hook(
            lambda module, gi, go, calls=calls: calls.append([gi[0].tolist(), go[0].tolist()])
        )

        def run(net: Any = net, checkpoint: Any = checkpoint) -> None:
            for _ in range(2):
                checkpoint(net, leaf()).backward()

        check.works(f"two iterations, {name}", run)
        check.equal(f"calls, {name}", calls, [[[6], [3]]] * 2)


@program("CK-18", PROMISE, since="1.11", source="pytorch#96866")
def every_entry_has_its_exit(check: Check) -> None:
    """In a non-reentrant region every call of a forward pre-hook is followed by one of the module's forward hook."""
    net = scales(2, 3)
    log = entries(net)
    y = non_reentrant()(net, leaf())
    check.order("forward", log, THROUGH)
    y.backward()
    check.order("forward and backward", log, THROUGH * 2)


@program("CK-19", PIN, since="2.1", source="pytorch#104278")
def a_hook_that_is_always_called_gets_the_output(check: Check) -> None:
    """A forward hook with ``always_call`` gets the output in the recomputation of a non-reentrant region too, and
    nothing is warned of."""
    outputs: list[Any] = []
    net = scales(2, 3)

    def hook(module: Any, args: Any, output: Any) -> None:
        outputs.append(None if output is None else output.tolist())
        output.sum()

    net[1].register_forward_hook(hook, always_call=True)
    y = non_reentrant()(net, leaf())
    check.equal("what the hook gets in forward", outputs, [[42]])
    check.silent("backward", y.backward)
    check.equal("what the hook gets in forward and in backward", outputs, [[42], [42]])


@program("CK-20", PROMISE, since="1.11", source="pytorch#82156")
def saved_tensors_can_be_read_twice(check: Check) -> None:
    """What is saved in a non-reentrant region can be unpacked more than once in a backward."""

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return gradients[0] * (ctx.saved_tensors[0] + ctx.saved_tensors[0])

    square: Any = Square.apply
    x = leaf()
    non_reentrant()(lambda x: x * x + 1, x).backward()
    check.equal("gradient where each is read once", x.grad, [14])
    x = leaf()
    check.works("backward", non_reentrant()(lambda x: square(x * x), x).backward)
    check.equal("gradient where one is read twice", x.grad, [4 * 7**3])
    x = leaf()
    node = non_reentrant()(lambda x: (x + 1) * (x + 2), x).grad_fn
    looks = check.works("two looks outside of backward", lambda: [(node._saved_self, node._saved_other) for _ in "ab"])
    if looks is not None:
        check.equal("what is saved, at each look", looks, [([8.0], [9.0])] * 2)


@program("CK-21", PROMISE, since="1.11", source="pytorch#161186")
def contexts_are_freed_after_backward(check: Check) -> None:
    """The context of a custom Function that ends a non-reentrant region is freed after backward, although the Function
    saves its output."""
    checkpoint = non_reentrant()

    def act(note: Note) -> None:
        class Last(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                outputs = x + 1, x + 2
                ctx.save_for_backward(x, *outputs)
                ctx.token = set()  # to a list there are no weak references
                note("context", ctx.token)
                return outputs

            @staticmethod
            def backward(ctx: Any, *gradients: Any) -> Any:
                return gradients[0] * ctx.saved_tensors[0]

        x = leaf()
        checkpoint(lambda x: Last.apply(x)[0], x).backward()
        check.equal("gradient", x.grad, [7])

    check.equal("what is left", survivors(act), [])


@program("CK-22", PROMISE, since="1.11", source=f"{CHECKPOINT}; saved_tensors_hooks; pytorch#193671")
def what_is_saved_has_been_filled(check: Check) -> None:
    """The slopes that RReLU saves are those that it has used: where a hook copies what is saved, and in a non-reentrant
    region."""
    layer = nn.RReLU(0.5, 0.75)  # of two slopes that are equal 1.11 does not use those that it saves
    x = torch.full((64, 64), -8.0, requires_grad=True)  # a power of two: y / x is exact

    def other_numbers() -> None:
        """Memory that was freed holds them by now, not slopes of before, whichever piece of it is used next."""
        _ = [torch.full((64, 64), 5.0) for _ in range(100)]

    def region(x: Any) -> Any:
        other_numbers()
        return layer(x)

    def right(y: Any) -> bool:
        (gradient,) = torch.autograd.grad(y.sum(), x)
        return bool((gradient == y.detach() / x.detach()).all())

    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.clone(), lambda tensor: tensor):
        copied = region(x)
    check.equal("each gradient is the slope, copied", right(copied), True)
    check.equal("each gradient is the slope, checkpointed", right(non_reentrant()(region, x)), True)


@program("CK-39", PROMISE, since="1.7", source="Extending PyTorch, 'save_for_backward'; torch.utils.checkpoint")
def inputs_of_regions_are_saved(check: Check) -> None:
    """What a region is called with is saved for backward like what an operation is called with: hooks for saved tensors
    pack it, and a backward raises where it was changed in place since, by a forward hook or else."""
    for name, checkpoint in {"no region": lambda region, x: region(x), **variants()}.items():
        for way in ("nothing", "a forward hook", "what comes after"):
            square, x = nn.Module(), leaf(3.0)
            square.forward = lambda x, checkpoint=checkpoint: checkpoint(lambda x: x * x, x)
            if way == "a forward hook":
                square.register_forward_hook(lambda module, args, output: args[0].mul_(2) and None)
            given = x * 1
            output = square(given)
            if way == "what comes after":
                given.mul_(2)
            fact = f"{name}: {way} changes the input"
            if way == "nothing":
                check.works(fact, output.backward)
                check.equal(f"{fact}: gradient", x.grad, [6.0])
            else:
                check.raises(fact, RuntimeError, output.backward, "modified by an inplace operation")
        if offered((1, 10)):
            packed, x = list[Any](), leaf(3.0)
            pack = lambda t, packed=packed: packed.append(t.tolist()) or t  # noqa: E731
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: 2 * t):
                output = checkpoint(lambda x: x * x, x)
            output.backward()
            check.true(f"{name}: the input is packed", [3.0] in packed)
            check.equal(f"{name}: gradient of what is unpacked: 2·(2·3)", x.grad, [12.0])
