"""Do hooks meet a Function of one's own as they meet an operation of torch?

Such a Function is made in several ways: ``forward`` may be given a ``ctx`` or leave that to ``setup_context``, and
``backward`` may be differentiable, or be marked with ``once_differentiable``. Hooks around it are called as around an
operation of torch, in all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.garbage import survivors
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.functions import WAYS, function_of, marked_once
from hookcheck.programs.host_changes import offered
from hookcheck.programs.nets import leaf, net
from hookcheck.programs.program import program

TWICE = "trying to differentiate twice a function that was marked"


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
    once = marked_once(lambda ctx, grad: 2 * ctx.saved_tensors[0] * grad)
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


def two_results(given: list[Any], mark: Callable[[Any, Any], None], sets_up: bool) -> Any:
    """A Function that gives 2x and 3x, and notes what backward is given; ``mark`` marks its ctx or second result."""

    def forward(ctx: Any, x: Any) -> Any:
        results = 2 * x, 3 * x
        mark(ctx, results[1])
        return results

    def backward(ctx: Any, *gradients: Any) -> Any:
        given.append([None if g is None else g.tolist() for g in gradients])
        return sum(factor * g for factor, g in zip((2, 3), gradients) if g is not None)

    if not sets_up:
        return function_of(forward=forward, backward=backward)
    alone = lambda x: (2 * x, 3 * x)  # noqa: E731
    return function_of(forward=alone, setup_context=lambda ctx, inputs, output: mark(ctx, output[1]), backward=backward)


MARKS: dict[str, tuple[Callable[[Any, Any], Any], Any, bool]] = {
    "unmarked": (lambda ctx, second: None, [0.0], True),
    "non-differentiable": (lambda ctx, second: ctx.mark_non_differentiable(second), [0.0], False),
    "not materialized": (lambda ctx, second: ctx.set_materialize_grads(False), None, True),
}
"""How a Function marks a second result that is not used, what its backward is given for that, and whether it requires
grad."""


# 5 at the result that is used, and 2 · 5 at the input
SEEN: dict[str, list[Any]] = {
    "none": [],
    "input": [[[10.0]]],
    "result": [[[5.0]]],
    "Node": [[[10.0], [5.0]]],
    "Node before": [[[5.0]]],
    "module": [[[10.0], [5.0]]],
}
"""The kinds of hooks around such a Function, and what each of their calls is given of what is used."""


@program(
    "AF-03",
    PROMISE,
    since="1.8",
    source="torch.autograd.function.FunctionCtx.mark_non_differentiable, set_materialize_grads",
)
def marks_hold_under_hooks(check: Check) -> None:
    """For a result that is not used, backward is given zeros, also where it is marked as non-differentiable, and None
    where gradients are not to be materialized: whatever hooks there are on the input, the results, the Node and the
    module around, each of which is called once with the gradients of what is used."""
    for way, sets_up in (
        (("with ctx", False), ("with setup_context", True)) if offered((2, 0)) else (("with ctx", False),)
    ):
        for name, (mark, due, requires_grad) in MARKS.items():
            for kind, seen in SEEN.items():
                if kind == "Node before" and not offered((1, 13)):
                    continue
                given, log, x = list[Any](), list[Any](), leaf(7.0)

                def note(*gradients: Any, log: list[Any] = log) -> None:
                    log.append([(g[0] if isinstance(g, tuple) else g).tolist() for g in gradients])

                module = net(lambda module, x: module.function.apply(x), function=two_results(given, mark, sets_up))
                if kind == "module":
                    module.register_full_backward_hook(lambda module, gi, go, note=note: note(gi, go))
                z = 1 * x
                y, unused = module(z)
                registered = {
                    "input": z.register_hook,
                    "result": y.register_hook,
                    "Node": y.grad_fn.register_hook,
                    "Node before": getattr(y.grad_fn, "register_prehook", None),
                }
                if kind in registered:
                    registered[kind](note)
                (5 * y).backward()
                what = f"{way}, {name}, hook: {kind}"
                check.equal(f"{what}: what backward is given", given, [[[5.0], due]])
                check.equal(f"{what}: the hook", log, seen)
                check.equal(f"{what}: gradient", x.grad, [10])
            check.equal(f"{way}, {name}: the result requires grad", unused.requires_grad, requires_grad)


@program("AF-04", PROMISE, since="2.0", source="torch.autograd.function.FunctionCtx.mark_dirty; Tensor.register_hook")
def marked_writes_under_hooks(check: Check) -> None:
    """A hook on a tensor gets the gradient of what the tensor was when it was registered, before a Function wrote to it
    and after; the tensor is what the Function gives; and what was saved of it before is found out to be changed."""
    for way in ("with ctx", "with setup_context"):

        def tripled(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(3)

        methods: dict[str, Any] = {"forward": tripled, "backward": lambda ctx, gradient: 3 * gradient}
        if way == "with setup_context":
            methods["forward"] = lambda x: x.mul_(3)
            methods["setup_context"] = lambda ctx, inputs, output: ctx.mark_dirty(inputs[0])
        function, log = function_of(**methods), list[Any]()
        x = leaf(2.0)
        y = 1 * x
        y.register_hook(lambda gradient, log=log: log.append(("before", gradient.tolist())))
        given = function.apply(y)
        y.register_hook(lambda gradient, log=log: log.append(("after", gradient.tolist())))
        check.true(f"{way}: the tensor is what the Function gives", given is y)
        (5 * y).backward()
        check.equal(f"{way}: hooks", log, [("after", [5.0]), ("before", [15.0])])
        check.equal(f"{way}: value and gradient", [y, x.grad], [[6], [15]])
        y = 1 * x
        squared = y * y
        function.apply(y)
        check.raises(f"{way}: what was saved", RuntimeError, squared.backward, "modified by an inplace operation")

    def each(ctx: Any, a: Any, b: Any) -> Any:
        ctx.mark_dirty(a, b)
        return a.mul_(3), b.mul_(5)

    x, log = leaf(2.0), []
    a, b = 1 * x, 1 * x
    function_of(forward=each, backward=lambda ctx, a, b: (3 * a, 5 * b)).apply(a, b)
    b.register_hook(lambda gradient: log.append(gradient.tolist()))
    (7 * a + 11 * b).backward()
    check.equal("two tensors: gradient of the second as it is after", log, [[11.0]])
    check.equal("two tensors: values and gradient", [a, b, x.grad], [[6], [10], [76]])


@program("AF-05", PROMISE, since="2.6", source="torch.autograd.Function.backward, needs_input_grad; setup_context")
def inputs_that_a_function_is_told(check: Check) -> None:
    """``setup_context`` is given all inputs of forward, those that are left at their defaults too, and backward is told
    of each of them whether it needs a gradient, with hooks around and without."""
    for hooks in (False, True):
        for needy in ("x", "w"):
            asked: list[Any] = []

            def setup_context(ctx: Any, inputs: Any, output: Any, asked: list[Any] = asked) -> None:
                asked.append([len(inputs), inputs[2]])
                ctx.save_for_backward(*inputs[:2])

            def backward(ctx: Any, gradient: Any, asked: list[Any] = asked) -> Any:
                asked.append([*ctx.needs_input_grad])
                x, w = ctx.saved_tensors
                return 4 * w * gradient, 4 * x * gradient, None

            function = function_of(forward=_scaled_product, setup_context=setup_context, backward=backward)
            log: list[Any] = []
            values = {"x": torch.tensor([3.0]), "w": torch.tensor([5.0])}
            values[needy].requires_grad_()
            module = net(lambda module, x, w, function=function: function.apply(x, w))
            if hooks:
                module.register_full_backward_hook(lambda module, gi, go, log=log: log.append(("module", go[0].item())))
                values[needy].register_hook(partial(_note, log, needy))
            module(values["x"], values["w"]).backward()
            what = f"{needy} needs a gradient, {'hooks' if hooks else 'no hooks'}"
            check.equal(f"{what}: what is told", asked, [[3, 4.0], [needy == "x", needy == "w", False]])
            gradient = {"x": 20.0, "w": 12.0}[needy]  # 4 w and 4 x
            check.equal(f"{what}: gradient", values[needy].grad, [gradient])
            check.equal(f"{what}: hooks", sorted(log), sorted([("module", 1.0), (needy, gradient)]) if hooks else [])


def _note(log: list[Any], word: str, gradient: Any) -> None:
    log.append((word, gradient.item()))


def _scaled_product(x: Any, w: Any, factor: float = 4.0) -> Any:
    return factor * x * w


@program(
    "AF-06",
    PROMISE,
    since="2.0",
    source="torch.autograd.Function.vmap, generate_vmap_rule; notes on extending torch.func with autograd.Function",
)
def functions_under_transforms(check: Check) -> None:
    """Under torch.func.vmap a Function of one's own gives each sample its gradient, and to what all samples share the
    sum of theirs, which hooks around see; under torch.func.grad, once and twice, a hook on a tensor inside is called,
    and what it returns is used."""
    func: Any = import_module("torch.func")
    product, square = _batching(_product), _batching(_own_square)
    x, w, log = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), leaf(5.0), list[Any]()
    for name, tensor in (("x", x), ("w", w)):
        tensor.register_hook(lambda gradient, name=name: log.append((name, gradient.tolist())))
    y = func.vmap(product.apply, in_dims=(0, None))(x, w)
    y.register_hook(lambda gradient: (log.append(("y", gradient.tolist())), gradient * 10)[1])
    y.sum().backward()
    check.equal("output", y, [[5], [10], [15]])
    # ten times w for each of x, and ten times the sum of x for w
    check.equal("hooks", sorted(log), [("w", [60.0]), ("x", [50.0] * 3), ("y", [[1.0]] * 3)])
    check.equal("gradients", [x.grad, w.grad], [[50] * 3, [60]])
    for factor in (1.0, 10.0):
        calls: list[None] = []

        def inside(x: Any, factor: float = factor, calls: list[None] = calls) -> Any:
            y = square.apply(x)
            y.register_hook(lambda gradient: (calls.append(None), gradient * factor)[1])
            return y.sum()

        what = f"a hook that gives {factor} times the gradient"
        check.equal(f"{what}: gradient", func.grad(inside)(torch.tensor(3.0)), 6 * factor)
        check.calls(f"{what}: calls", len(calls), 1)
        check.equal(f"{what}: second derivative", func.grad(func.grad(inside))(torch.tensor(3.0)), 2 * factor)
        per_sample = func.vmap(func.grad(inside))(torch.tensor([1.0, 2.0]))
        check.equal(f"{what}: gradient of each sample", per_sample, [2 * factor, 4 * factor])


def _product(ctx: Any, gradient: Any) -> Any:
    x, w = ctx.saved_tensors
    return gradient * w, gradient * x


def _own_square(ctx: Any, gradient: Any) -> Any:
    return 2 * ctx.saved_tensors[0] * gradient


def _batching(backward: Callable[..., Any]) -> Any:
    """A Function that multiplies what it is given, or squares it, and may be batched."""
    function = function_of(
        forward=lambda x, *w: x * (w[0] if w else x),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        backward=backward,
    )
    function.generate_vmap_rule = True
    return function


HELD = ("register_forward_hook", "register_full_backward_hook")
"""What registers hooks that are given the output of a Function, or its gradient."""


@program("AF-11", PROMISE, since="1.8", source="Memory management of autograd graphs; pytorch#25340")
def a_context_that_holds_the_output(check: Check) -> None:
    """A Function whose ``ctx`` holds its output in an attribute is freed with it when the output is dropped, hooks that
    hold what they are given or not."""
    for register in ("", *HELD):

        def play(note: Any, register: str = register) -> None:
            def forward(ctx: Any, x: Any) -> Any:
                ctx.y = 2 * x
                note("ctx", ctx)
                return ctx.y

            function, held = function_of(forward=forward, backward=lambda ctx, gradient: 2 * gradient), list[Any]()
            module = net(lambda module, x: function.apply(x))
            if register:
                getattr(module, register)(lambda *given: held.append(given))
            module(leaf(3.0)).backward()

        check.equal(f"what is left, {register or 'no hook'}", survivors(play), [])
