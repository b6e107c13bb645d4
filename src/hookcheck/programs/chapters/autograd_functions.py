"""Do hooks meet a Function of one's own as they meet an operation of torch?

Such a Function is made in several ways: ``forward`` may be given a ``ctx`` or leave that to ``setup_context``, and
``backward`` may be differentiable, or be marked with ``once_differentiable``. Hooks around it are called as around an
operation of torch, in all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.host_changes import Release, offered
from hookcheck.programs.nets import leaf, net
from hookcheck.programs.program import program

TWICE = "trying to differentiate twice a function that was marked"
Backward = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Squaring:
    """How a Function is made that squares, of a ``backward`` that notes whether grad mode is on; since which release it
    can be, and whether it can be differentiated once alone."""

    make: Callable[[Backward], Any]
    since: Release = (1, 8)
    once: bool = False


def _square(**methods: Any) -> Any:
    """A Function with those methods."""
    static = {name: staticmethod(method) for name, method in methods.items()}
    return type("Square", (torch.autograd.Function,), static)


def _saving(ctx: Any, x: Any) -> Any:
    """A forward that squares and saves what it is given."""
    ctx.save_for_backward(x)
    return x * x


def _once(backward: Backward) -> Any:
    return _square(forward=_saving, backward=torch.autograd.function.once_differentiable(backward))


def _setting_up(backward: Backward) -> Any:
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    return _square(forward=lambda x: x * x, setup_context=setup_context, backward=backward)


WAYS = {
    "with ctx": Squaring(lambda backward: _square(forward=_saving, backward=backward)),
    "with setup_context": Squaring(_setting_up, (2, 0)),
    "once differentiable": Squaring(_once, once=True),
}
"""The ways to make a Function, by name."""


def hooked(x: Any, squared: Callable[[Any], Any], log: list[Any]) -> Any:
    """The output of a module that squares ``x``, with a hook of each kind around it, which notes its gradients."""

    def note(word: str, *gradients: Any) -> None:
        log.append((word, *(gradient.item() for gradient in gradients)))

    module = net(lambda module, x: squared(x))
    module.register_full_backward_hook(lambda module, gi, go: note("module", *gi, *go))
    x.register_hook(partial(note, "input"))
    y = module(x)
    y.register_hook(partial(note, "output"))
    node = y.grad_fn
    while "Square" not in node.name():
        node = node.next_functions[0][0]
    if offered((1, 13)):
        node.register_prehook(lambda go: note("before the Node", *go))
    node.register_hook(lambda gi, go: note("Node", *go))
    return y


@program(
    "AF-01",
    PROMISE,
    since="1.8",
    source="torch.autograd.Function.backward; torch.autograd.function.once_differentiable; notes on extending "
    "autograd, 'Double Backward'",
)
def hooks_around_a_function(check: Check) -> None:
    """Hooks on the input, the output, the Node and the module of a Function of one's own are called once with its
    gradients, in each way to make it; its backward runs in grad mode where the backward builds a graph, and without
    where it is marked ``once_differentiable``, whose gradients refuse to be differentiated."""
    for name, way in WAYS.items():
        for builds in (False, True) if offered(way.since) else ():
            what, log, modes = f"{name}, {'a graph is built' if builds else 'no graph'}", list[Any](), list[bool]()

            def backward(ctx: Any, grad: Any, modes: list[bool] = modes) -> Any:
                modes.append(torch.is_grad_enabled())
                return 2 * ctx.saved_tensors[0] * grad

            x, five = leaf(3.0), leaf(5.0)
            y = hooked(1 * x, way.make(backward).apply, log)
            (gradient,) = torch.autograd.grad(y, x, five, create_graph=builds)
            before = [("before the Node", 5.0)] if offered((1, 13)) else []
            # 5 at the output, and 2 · 5 x at the input
            due = [("output", 5.0), *before, ("Node", 5.0), ("module", 30.0, 5.0), ("input", 30.0)]
            check.equal(f"{what}: hooks", sorted(log), sorted(due))
            check.equal(f"{what}: grad mode in backward", modes, [builds and not way.once])
            check.equal(f"{what}: gradient", gradient, [30.0])
            check.equal(f"{what}: the gradient requires grad", gradient.requires_grad, builds)
            if not builds:
                continue
            log.clear()
            if way.once:
                check.raises(f"{what}: differentiated again", RuntimeError, gradient.backward, TWICE)
                check.order(
                    f"{what}: hooks then", [word for word, *_ in log if word in ("Node", "module", "input")], []
                )
            else:
                check.works(f"{what}: differentiated again", gradient.backward)
                # of 2 · 5 x, with the gradient that the first backward started from in the place of 5
                check.equal(f"{what}: second derivatives", [x.grad, five.grad], [[10.0], [6.0]])


@program(
    "AF-02",
    PROMISE,
    since="1.8",
    source="torch.autograd.function.FunctionCtx.save_for_backward, 'performing double backward raises an error'",
)
def a_gradient_that_is_no_constant(check: Check) -> None:
    """Where a graph is built, the gradient of a Function that is marked ``once_differentiable`` requires grad as hooks
    get it, and refuses to be differentiated, for all leaves or for one, whether or not the gradient that backward
    starts from requires grad."""
    once = _once(lambda ctx, grad: 2 * ctx.saved_tensors[0] * grad)
    for requires_grad in (True, False):
        x, log = leaf(3.0), list[tuple[str, bool]]()
        z = 1 * x
        z.register_hook(lambda gradient, log=log: log.append(("input", gradient.requires_grad)))
        module = net(lambda module, z: once.apply(z))
        module.register_full_backward_hook(lambda module, gi, go, log=log: log.append(("module", gi[0].requires_grad)))
        start = torch.tensor([5.0], requires_grad=requires_grad)
        (gradient,) = torch.autograd.grad(module(z) + x**3, x, start, create_graph=True)
        what = f"from a gradient that requires {'grad' if requires_grad else 'none'}"
        check.equal(f"{what}: gradient", gradient, [5 * 2 * 3 + 5 * 3 * 9])  # of x² + x³
        check.equal(f"{what}: hooks get what requires grad", sorted(log), [("input", True), ("module", True)])
        again = partial(gradient.backward, retain_graph=True)
        check.raises(f"{what}: differentiated again", RuntimeError, again, TWICE)
        again = partial(torch.autograd.grad, gradient, x, retain_graph=True)
        check.raises(f"{what}: differentiated again for one leaf", RuntimeError, again, TWICE)
