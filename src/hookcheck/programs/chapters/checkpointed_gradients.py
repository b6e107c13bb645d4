"""Do hooks inside, outside and around a checkpointed region see the gradients that they see without checkpointing?

Checkpointing changes when a forward is run, and not what its gradients are: hooks on modules, tensors and parameters
inside of a region, before and after it and around it are called as often, and with the same gradients, as without it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.checkpoints import (
    CHECKPOINT,
    NON_REENTRANT,
    REENTRANT,
    WRAPPER,
    leaf,
    scales,
    variants,
)
from hookcheck.programs.host_changes import offered
from hookcheck.programs.program import program

BACKWARD = f"torch.nn.Module.register_full_backward_hook; {CHECKPOINT}"

# A chain that multiplies by 2, 3 and 5, called with 7, gives 14, 42 and 210. The cotangents of its layers' outputs are
# 15, 5 and 1, those of their inputs 30, 15 and 5; the gradients of the weights are 15 * 7, 5 * 14 and 1 * 42.
INPUTS, OUTPUTS, WEIGHTS = [[30], [15], [5]], [[15], [5], [1]], [[105], [70], [42]]


def chain() -> tuple[Any, Any]:
    """The chain, and its input."""
    return scales(2, 3, 5), leaf()


def weights(net: Any) -> list[Any]:
    """The gradients of a chain's weights."""
    return [layer.weight.grad for layer in net]


def called_with(log: list[Any]) -> Callable[..., None]:
    """A full backward hook, or a pre-hook, that notes its gradients."""

    def hook(module: Any, *gradients: Any) -> None:
        log.append([[None if g is None else g.tolist() for g in each] for each in gradients])

    return hook


@program("CK-01", PROMISE, since="1.8", source=BACKWARD)
def full_hooks_inside(check: Check) -> None:
    """Full backward hooks of modules inside of the region are called once each, from the last to the first, with the
    gradients that they would get without it."""
    for name, checkpoint in variants().items():
        net, x = chain()
        log: list[Any] = []
        for layer in net:
            layer.register_full_backward_hook(called_with(log))

        def run(net: Any = net, x: Any = x, checkpoint: Any = checkpoint) -> None:
            checkpoint(net, x).backward()

        check.works(f"forward and backward, {name}", run)
        expected = [[[gi], [go]] for gi, go in zip(INPUTS, OUTPUTS)]
        check.equal(f"grad_input and grad_output of each call, {name}", log, expected[::-1])
        check.equal(f"gradient of the input, {name}", x.grad, [30])
        check.equal(f"gradients of the weights, {name}", weights(net), WEIGHTS)
    gradients: dict[str, Any] = {}
    regions = variants() if offered((1, 10)) else {}  # before that a module with a hook raises under no_grad (BS-03)
    for name, region in {"without a region": lambda part, *args: part(*args), **regions}.items():
        part, log = nn.Bilinear(1, 1, 1, bias=False), []
        nn.init.constant_(part.weight, 2.0)
        part.register_full_backward_hook(called_with(log))
        region(part, torch.tensor([[3.0]], requires_grad=True), torch.tensor([[5.0]])).backward()
        gradients[name] = log
    due = gradients.pop("without a region")
    check.equal("calls where the second input requires no grad", gradients, dict.fromkeys(gradients, due))


@program("CK-02", PROMISE, since="1.8", source=BACKWARD)
def what_a_full_hook_inside_returns_is_used(check: Check) -> None:
    """What a full backward hook inside of the region returns takes the place of ``grad_input`` there and before it."""
    for name, checkpoint in variants().items():
        net, x = chain()

        def run(net: Any = net, x: Any = x, checkpoint: Any = checkpoint) -> None:
            net[1].register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 10,))
            checkpoint(net, x).backward()

        check.works(f"forward and backward, {name}", run)
        check.equal(f"gradient of the input, {name}", x.grad, [300])
        check.equal(f"gradients of the weights, {name}", weights(net), [[1050], [70], [42]])


@program("CK-03", PROMISE, since="2.0", source=f"torch.nn.Module.register_full_backward_pre_hook; {CHECKPOINT}")
def full_pre_hooks_inside(check: Check) -> None:
    """Full backward pre-hooks of modules inside of the region are called once each with their ``grad_output``, and what
    they return takes its place."""
    for name, checkpoint in variants().items():
        net, x = chain()
        log: list[Any] = []
        for layer in net:
            layer.register_full_backward_pre_hook(called_with(log))
        net[1].register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 10,))
        checkpoint(net, x).backward()
        check.equal(f"grad_output of each call, {name}", log, [[[[1]]], [[[5]]], [[[150]]]])
        check.equal(f"gradient of the input, {name}", x.grad, [300])
        check.equal(f"gradients of the weights, {name}", weights(net), [[1050], [700], [42]])


@program("CK-04", PROMISE, since="1.8", source=BACKWARD)
def full_hooks_outside_and_around(check: Check) -> None:
    """Full backward hooks of a module whose forward is the region, and of modules before and after it, are called once
    each, with the gradients that they would get without it."""

    for name, checkpoint in variants().items():

        class Region(nn.Module):
            def __init__(self, checkpoint: Any) -> None:
                super().__init__()
                self.inner = scales(3)
                self.checkpoint = checkpoint

            def forward(self, x: Any) -> Any:
                return self.checkpoint(self.inner, x)

        region = Region(checkpoint)
        net, x = nn.Sequential(*scales(2), region, *scales(5)), leaf()
        log: list[Any] = []
        for layer in net:
            layer.register_full_backward_hook(called_with(log))
        net.register_full_backward_hook(called_with(log))
        net(x).backward()
        expected = [[[gi], [go]] for gi, go in zip([[5], [15], [30], [30]], [[1], [5], [15], [1]])]
        check.equal(f"after, around, before, and all of it, {name}", log, expected)
        check.equal(f"gradient of the input, {name}", x.grad, [30])


@program("CK-05", PROMISE, since="1.7", source=f"torch.Tensor.register_hook; {CHECKPOINT}")
def tensor_hooks(check: Check) -> None:
    """Tensor hooks on a region's input, on its output and on the parameters that it uses are called once each, and what
    they return is used."""
    for name, checkpoint in variants().items():
        net, x = chain()
        log: dict[str, list[Any]] = {key: [] for key in ("input", "output", "0", "1", "2")}
        entered = x * 1
        entered.register_hook(lambda g, log=log: log["input"].append(g.tolist()))
        for i, layer in enumerate(net):
            layer.weight.register_hook(lambda g, log=log, i=i: log[str(i)].append(g.tolist()))
        y = checkpoint(net, entered)
        y.register_hook(lambda g, log=log: log["output"].append(g.tolist()))
        y.register_hook(lambda g: g * 10)
        y.backward()
        check.equal(f"on the input, {name}", log["input"], [[300]])
        check.equal(f"on the output, {name}", log["output"], [[1]])
        for i, gradient in enumerate(WEIGHTS):
            check.equal(f"on weight {i}, {name}", log[str(i)], [[10 * gradient[0]]])
        check.equal(f"gradient of the input, {name}", x.grad, [300])


@program("CK-06", PROMISE, since="1.7", source=f"torch.Tensor.register_hook; {CHECKPOINT}")
def tensor_hooks_registered_inside(check: Check) -> None:
    """A tensor hook that the region registers on a tensor of its own, where that needs a gradient, is called once."""
    for name, checkpoint in variants().items():
        log: list[Any] = []

        def region(x: Any, log: list[Any] = log) -> Any:
            h = x * x
            if h.requires_grad:
                h.register_hook(lambda g: log.append(g.tolist()))
            return h * h * h

        x = leaf(2.0)
        checkpoint(region, x).backward()
        check.equal(f"gradients that the hook gets, {name}", log, [[48]])  # 3 h**2 of h = 4
        check.equal(f"gradient of the input, {name}", x.grad, [192])  # of x**6: 6 x**5

        if offered((1, 8)):
            log.clear()
            x = leaf(2.0)
            checkpoint(lambda x, region=region: (x.detach() + 1, region(x)), x)[1].backward()
            check.equal(f"gradients that it gets beside an output that has none, {name}", log, [[48]])


@program("CK-07", PROMISE, since="1.7", source=f"torch.nn.Module.register_forward_hook; {CHECKPOINT}")
def forward_hooks_that_replace(check: Check) -> None:
    """What forward hooks and forward pre-hooks inside of the region return is used in both passes: the output and the
    gradients are those that they would be without it."""
    for name, checkpoint in variants().items():
        net, x = chain()
        net[1].register_forward_pre_hook(lambda module, args: (args[0] * 10,))
        net[1].register_forward_hook(lambda module, args, output: output * output)
        y = checkpoint(net, x)
        check.equal(f"output, {name}", y, [5 * 420**2])  # 2 * 7 * 10 * 3 = 420, squared, times 5
        y.backward()
        # z = 420 = 60 x = 140 w1, y = 5 z**2: dy/dz = 4200.
        check.equal(f"gradient of the input, {name}", x.grad, [4200 * 60])
        check.equal(f"gradients of the weights, {name}", weights(net), [[4200 * 210], [4200 * 140], [420**2]])


@program("CK-08", PROMISE, since="2.1", source=f"torch.Tensor.register_post_accumulate_grad_hook; {CHECKPOINT}")
def post_accumulate_hooks(check: Check) -> None:
    """Post-accumulate-grad hooks of parameters that the region uses are called once each, with ``.grad`` complete."""
    for name, checkpoint in variants().items():
        net, x = chain()
        log: list[Any] = []
        for layer in net:
            layer.weight.register_post_accumulate_grad_hook(lambda p, log=log: log.append(p.grad.tolist()))
        checkpoint(net, x).backward()
        check.equal(f"gradient at each call, {name}", log, WEIGHTS[::-1])


@program("CK-09", PROMISE, since="2.0", source=f"torch.autograd.graph.register_multi_grad_hook; {CHECKPOINT}")
def multi_grad_hooks(check: Check) -> None:
    """A multi-grad hook on parameters of a non-reentrant region and on its input is called once, with all gradients."""
    net, x = chain()
    log: list[Any] = []
    tensors = [layer.weight for layer in net] + [x]
    torch.autograd.graph.register_multi_grad_hook(tensors, lambda gs: log.append([g and g.tolist() for g in gs]))
    variants()[NON_REENTRANT](net, x).backward()
    check.equal("gradients of each call", log, [[*WEIGHTS, [30]]])


@program("CK-10", PIN, since="2.0", source=f"torch.autograd.graph.register_multi_grad_hook; {CHECKPOINT}")
def multi_grad_hooks_of_reentrant_regions(check: Check) -> None:
    """Of a reentrant region, backward inside of backward is one of its own: a multi-grad hook on parameters of two
    regions is called once for each, with None for the other's."""
    first, second, x = scales(2), scales(3), leaf()
    log: list[Any] = []
    tensors = [first[0].weight, second[0].weight]
    torch.autograd.graph.register_multi_grad_hook(
        tensors, lambda gradients: log.append([None if g is None else g.tolist() for g in gradients])
    )
    checkpoint = variants()[REENTRANT]
    checkpoint(second, checkpoint(first, x)).backward()
    check.equal("gradients of each call", log, [[None, [14]], [[21], None]])


@program("CK-11", PROMISE, since="1.8", source=BACKWARD)
def regions_in_regions(check: Check) -> None:
    """Full backward hooks of modules in a region inside of a region are called once each, with the gradients that they
    would get without either."""
    for name, checkpoint in variants().items():
        net, x = chain()
        log: list[Any] = []

        def run(net: Any = net, x: Any = x, checkpoint: Any = checkpoint, log: list[Any] = log) -> None:
            for layer in net:
                layer.register_full_backward_hook(called_with(log))
            checkpoint(lambda x: net[2](checkpoint(lambda x: net[1](net[0](x)), x)), x).backward()

        check.works(f"forward and backward, {name}", run)
        expected = [[[gi], [go]] for gi, go in zip(INPUTS, OUTPUTS)]
        check.equal(f"grad_input and grad_output of each call, {name}", log, expected[::-1])
        check.equal(f"gradient of the input, {name}", x.grad, [30])
        check.equal(f"gradients of the weights, {name}", weights(net), WEIGHTS)


@program("CK-12", PROMISE, since="1.11", source=BACKWARD)
def two_backwards(check: Check) -> None:
    """Full backward hooks of modules in a non-reentrant region are called in each of two backwards, by whatever way,
    with the gradients of that backward."""
    net, x = chain()
    log: list[Any] = []
    net[0].register_full_backward_hook(called_with(log))
    y = variants()[NON_REENTRANT](net, x)
    y.backward(retain_graph=True)
    check.equal("by backward", log, [[[[30]], [[15]]]])
    log.clear()
    (gradient,) = torch.autograd.grad(2 * y, x)
    check.equal("by grad of twice the output", log, [[[[60]], [[30]]]])
    check.equal("gradient of twice the output", gradient, [60])


@program(
    "CK-13", PROMISE, since="1.8", source=f"torch.nn.modules.module.register_module_full_backward_hook; {CHECKPOINT}"
)
def global_full_hooks(check: Check) -> None:
    """A global full backward hook is called once for each module inside of the region, and for the region's own."""
    for name, checkpoint in variants().items():
        net, x = chain()
        log: list[Any] = []
        handle = torch.nn.modules.module.register_module_full_backward_hook(called_with(log))

        def run(net: Any = net, x: Any = x, checkpoint: Any = checkpoint) -> None:
            checkpoint(net, x).backward()

        check.works(f"forward and backward, {name}", run)
        handle.remove()
        expected = [[[gi], [go]] for gi, go in zip(INPUTS, OUTPUTS)]
        around = [[[[30]], [[1]]]] * (2 if name == WRAPPER else 1)  # the chain itself, and the wrapper, a module too
        check.equal(f"the layers, and the chain itself, {name}", log, [*expected[::-1], *around])


def _without_grad(region: Any, x: Any) -> Any:
    with torch.no_grad():
        return region(x)


USES: dict[str, Callable[[Any, Any], Any]] = {
    "a call without grad mode": _without_grad,
    "a plain call": lambda region, x: region(x),
    "a reentrant checkpoint": lambda region, x: variants()[REENTRANT](region, x),
    "a non-reentrant checkpoint": lambda region, x: variants()[NON_REENTRANT](region, x),
}
"""The ways to use a function that take the cast of a weight from the cache of autocast, or put it there."""


@program("CK-36", PROMISE, since="1.13", source=f"torch.autocast, cache_enabled; {CHECKPOINT}; pytorch#141896")
def casts_that_two_uses_share(check: Check) -> None:
    """Under autocast, which keeps the cast of a weight for its next use, a weight and its hooks get the gradient of
    each use, whatever used it first: a call without grad mode, a checkpointed one or a plain one."""
    for first, use in USES.items():
        for second in [way for way in USES if way != "a call without grad mode"]:
            weight, x, log = torch.tensor([[3.0]], requires_grad=True), torch.tensor([[2.0]]), list[Any]()
            weight, x = weight.detach().to(check.device).requires_grad_(), x.to(check.device).requires_grad_()
            weight.register_hook(lambda gradient, log=log: log.append(gradient.item()))

            def region(x: Any, weight: Any = weight) -> Any:
                return nn.functional.linear(x, weight)

            with torch.autocast(check.device.partition(":")[0], dtype=torch.bfloat16):
                total = use(region, x) + USES[second](region, x)
            what = f"{first}, then {second}"
            check.works(f"{what}: backward", total.float().sum().backward)
            # each use that is differentiated gives the weight x, which is 2
            expected = 2.0 if first == "a call without grad mode" else 4.0
            check.equal(f"{what}: gradient", None if weight.grad is None else weight.grad.item(), expected)
            check.equal(f"{what}: what the hook got, in all", sum(log), expected)


def _refuse(*gradients: Any) -> None:
    """A hook that raises."""
    raise ValueError("refused")


@program("CK-37", PROMISE, since="1.7", source=f"{CHECKPOINT}; pytorch#37874")
def checkpoints_after_a_failed_backward(check: Check) -> None:
    """When a hook has raised in a backward, or while gradients were asked for, the backward of a checkpoint that comes
    next on that thread runs as ever."""
    failing: dict[str, Callable[[Any, Any], object]] = {
        "backward": lambda y, x: y.backward(),
        "grad": lambda y, x: torch.autograd.grad(y, x),
    }
    if offered((1, 8)):
        failing["backward with inputs"] = lambda y, x: torch.autograd.backward(y, inputs=[x])

    with ThreadPoolExecutor(1) as thread:  # what is left behind is so on no other one
        for act, fail in failing.items():
            for kind in ("tensor hook", "Node hook"):
                for name, checkpoint in variants().items():
                    x = leaf()
                    y = 2 * x
                    (y if kind == "tensor hook" else y.grad_fn).register_hook(_refuse)
                    with suppress(ValueError):
                        thread.submit(fail, 3 * y, x).result()
                    x, what = leaf(), f"{act} that a {kind} refused, then {name}"
                    backward = checkpoint(lambda x: 30 * x, x).backward
                    check.works(f"{what}: backward", lambda backward=backward: thread.submit(backward).result())
                    check.equal(f"{what}: gradient of the input", x.grad, [30])
