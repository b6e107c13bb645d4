"""When do full backward hooks fire, and with what, where releases have been known to be wrong?

Double backward, a loss that starts inside the module, exceptions, gradients of parameters alone, inputs that require no
grad, or that are no tensors, or that come by keyword; each program is a fault that was found in some release.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import leaf, net, times, weighted
from hookcheck.programs.program import program

FULL = "torch.nn.Module.register_full_backward_hook"
EARLY = "hook is firing"
"""A part of the warning that a full hook fires before the module's own backward."""


def watched(module: Any) -> list[tuple[Any, Any]]:
    """The (grad_input, grad_output) of each call of a full backward hook of the module, as they come."""
    seen: list[tuple[Any, Any]] = []
    module.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append((grad_input, grad_output)))
    return seen


def noting(log: list[str], label: str) -> Any:
    """A full hook or a pre-hook that writes down that it was called."""
    return lambda module, *gradients: log.append(label)


def keeping_inner() -> Any:
    """``y = 2 * inner`` with ``inner = 3 * x``, which the module keeps, so that a loss can start there."""

    def forward(module: Any, x: Any) -> Any:
        module.inner = 3 * x
        return 2 * module.inner

    return net(forward)


@program("BF-01", PROMISE, since="1.8", source="pytorch#88312")
def double_backward_of_a_loss(check: Check) -> None:
    """A loss with a full backward hook can be differentiated twice: the second derivative of (x - y)² is 2."""
    loss = nn.MSELoss()
    seen = watched(loss)
    x = leaf(5.0)
    (first,) = torch.autograd.grad(loss(x, torch.tensor([2.0])), x, create_graph=True)
    check.equal("first derivative", first, [6])  # 2 * (5 - 2)
    second = check.works("second backward", partial(torch.autograd.grad, first.sum(), x))
    check.equal("second derivative", second, ([2],))
    check.equal("grad_input of the first call", [call[0][0] for call in seen[:1]], [[6]])


@program("BF-02", PIN, since="1.8", source="pytorch#88357")
def double_backward_fires_once(check: Check) -> None:
    """The backward of a gradient does not compute the gradient of the module's output, so the hook does not fire."""
    cubed = net(lambda module, x: x * x * x)
    seen, x = watched(cubed), leaf(2.0)
    (first,) = torch.autograd.grad(cubed(x).sum(), x, create_graph=True)
    check.equal("calls in the first backward", seen, [(([12],), ([1],))])  # 3 x²
    (second,) = torch.autograd.grad(first.sum(), x)
    check.equal("second derivative", second, [12])  # 6 x
    check.calls("calls in both backwards", len(seen), 1)


@program("BF-03", PROMISE, since="1.7", source="pytorch#112438")
def exceptions_of_callbacks(check: Check) -> None:
    """An exception in a callback that a hook queued for the end of backward reaches the caller with its text."""

    def fail() -> None:
        raise KeyError("a text of its own")

    x = leaf(1.0)
    y = times(2.0)(x)
    y.register_hook(lambda grad: torch.autograd.Variable._execution_engine.queue_callback(fail))
    check.raises("backward", KeyError, y.sum().backward, "a text of its own")
    check.equal("gradient, which was there before", x.grad, [2])


@program("BF-04", PROMISE, since="1.8", source="pytorch#46163")
def nothing_is_left_by_an_exception(check: Check) -> None:
    """After a backward that was broken off, one that does not pass the module's output does not fire the hook."""
    module = keeping_inner()
    seen, x = watched(module), leaf(1.0)

    def fail(grad: Any) -> None:
        raise KeyError("broken off")

    y = module(x)
    failing = module.inner.register_hook(fail)
    check.raises("first backward", KeyError, partial(y.sum().backward, retain_graph=True), "broken off")
    check.calls("calls in the first backward", len(seen), 0)
    failing.remove()
    check.works("second backward", module.inner.sum().backward)
    check.equal("gradient of the input", x.grad, [3])
    check.equal("calls in the second backward", seen, [], "call")


@program("BF-05", PROMISE, since="1.8", source="pytorch#54405")
def a_module_that_gets_data(check: Check) -> None:
    """The hook of a composite module fires once where the module is the first and gets data."""
    first = nn.Sequential(weighted(2.0), nn.ReLU())
    model = nn.Sequential(first, weighted(3.0))
    seen = watched(first)
    model(torch.tensor([5.0])).sum().backward()
    check.equal("calls", seen, [((None,), ([3],))], "call")
    check.equal("gradient of the weight", first[0].weight.grad, 15.0)


@program("BF-06", PROMISE, since="1.8", source="pytorch#57944")
def the_first_input_needs_no_gradient(check: Check) -> None:
    """A full backward hook works where the first argument requires no grad and the second does."""
    product = net(lambda module, a, b: a * b)
    seen, b = watched(product), leaf(5.0)
    y = check.works("forward", partial(product, torch.tensor([3.0]), b))
    if y is not None:
        y.sum().backward()
        check.equal("gradient of the second argument", [call[0][1] for call in seen], [[3]])
        check.equal("grad_output", [call[1] for call in seen], [([1],)])
        check.equal("its .grad", b.grad, [3])
    needing: list[Any] = []
    sums = net(lambda module, *args: needing.append([a.requires_grad for a in args]) or sum(args))
    watched(sums)
    sums(leaf(5.0), torch.ones(1), torch.ones(1))
    check.equal("which of three arguments forward sees require grad", needing, [[True, False, False]])


@program("BF-07", PROMISE, since="1.8", source="pytorch#56693")
def no_tensor_among_the_inputs(check: Check) -> None:
    """The hook of a module that gets no tensor, or nothing at all, fires once."""
    for name, args in (("a number and a text", (2, "text")), ("nothing", ())):
        module = net(lambda module, factor=2, text="": factor * module.weight, weight=3.0)
        seen = watched(module)
        check.works(f"backward of one that gets {name}", module(*args).backward)
        check.equal(f"calls of one that gets {name}", seen, [((None,) * len(args), (1.0,))], "call")
        check.equal(f"gradient of the weight of one that gets {name}", module.weight.grad, 2.0)


@program("BF-08", PROMISE, since="1.8", source="pytorch#46163")
def two_forwards_and_one_backward(check: Check) -> None:
    """Of a module that is called twice before one backward, each call of the hook has the gradients of one call."""
    tripled = times(3.0)
    seen, a, b = watched(tripled), leaf(1.0), leaf(1.0)
    (5 * tripled(a) + 7 * tripled(b)).sum().backward()
    calls = sorted((grad_input[0].item(), grad_output[0].item()) for grad_input, grad_output in seen)
    check.equal("calls", calls, [(15, 5), (21, 7)])  # grad_input = 3 * grad_output
    check.equal("gradients of the two inputs", (a.grad, b.grad), ([15], [21]))


@program("BF-09", PIN, since="1.8", source="pytorch#46163; design note on hooks, intermediate loss")
def a_loss_on_an_inner_tensor(check: Check) -> None:
    """Where the loss starts inside the module, the hook is called with grad_output None and the real grad_input."""
    module = keeping_inner()
    seen, x = watched(module), leaf(1.0)
    module(x)
    gradient = check.works("backward", partial(torch.autograd.grad, module.inner.sum(), x))
    if gradient is not None:
        check.equal("gradient of the input", gradient, ([3],))
        check.equal("calls", seen, [(([3],), (None,))], "call")


@program("BF-10", PROMISE, since="1.8", source="pytorch#46163")
def a_loss_on_an_inner_tensor_and_on_the_output(check: Check) -> None:
    """Where the loss starts at the output and inside the module, the hook is called once, with the whole grad_input."""
    module = keeping_inner()
    seen, x = watched(module), leaf(1.0)
    (module(x) + 10 * module.inner).sum().backward()
    check.equal("calls", seen, [(([36],), ([1],))])  # 2 * 3 + 10 * 3
    check.equal("gradient of the input", x.grad, [36])


@program("BF-11", PROMISE, since="1.8", source="pytorch#82788")
def nothing_is_left_by_a_backward(check: Check) -> None:
    """After a backward, one that does not pass the module's output does not fire the hook."""
    module = keeping_inner()
    seen, x = watched(module), leaf(1.0)
    module(x).sum().backward(retain_graph=True)
    check.equal("calls in the first backward", seen, [(([6],), ([1],))])
    module.inner.sum().backward()
    check.equal("calls in both backwards", len(seen), 1, "call")
    check.equal("gradient of the input", x.grad, [9])


@program("BF-12", PROMISE, since="1.8", source="pytorch#82788")
def nothing_is_left_by_gradients_of_parameters(check: Check) -> None:
    """After gradients of parameters alone, a backward that does not pass the output does not fire the hook."""

    def forward(module: Any, x: Any) -> Any:
        module.inner = 3 * x
        return module.weight * module.inner

    module = net(forward, weight=2.0)
    seen, x = watched(module), leaf(1.0)
    (given,) = torch.autograd.grad(module(x).sum(), module.weight, retain_graph=True)
    check.equal("gradient of the weight", given, 3.0)
    check.calls("calls for the weight alone", len(seen), 0)
    (7 * module.inner).sum().backward()
    check.equal("gradient of the input", x.grad, [21])
    check.equal("calls for a loss on an inner tensor", seen, [], "call")


@program("BF-13", PROMISE, since="1.8", source="pytorch#35643")
def a_keyword_that_requires_grad(check: Check) -> None:
    """Where only a keyword argument requires grad, the hook fires after its gradient is computed, without a warning."""
    log: list[str] = []
    doubled = net(lambda module, key: 2 * key)
    doubled.register_full_backward_hook(lambda module, grad_input, grad_output: log.append("hook"))
    x = leaf(1.0)
    key = 3 * x
    key.register_hook(lambda grad: log.append("gradient of the keyword"))
    check.silent("backward", doubled(key=key).sum().backward, EARLY)
    check.order("what happened", log, ["gradient of the keyword", "hook"])
    check.equal("gradient", x.grad, [6])


@program("BF-14", PIN, since="1.8", source="pytorch#100528")
def a_container_after_its_children(check: Check) -> None:
    """The hook of a container fires after those of its children, whether the input requires grad or not."""
    for name, given in (("requires grad", leaf(1.0)), ("requires no grad", torch.tensor([1.0]))):
        log: list[str] = []
        first, last = weighted(2.0), weighted(3.0)
        outer = nn.Sequential(first, last)
        for module, label in ((outer, "container"), (first, "first"), (last, "last")):
            module.register_full_backward_hook(noting(log, label))
        outer(given).sum().backward()
        check.order(f"hooks where the input {name}", log, ["last", "first", "container"])


@program("BF-15", PIN, since="2.0", source="pytorch#100528")
def begin_and_end_are_nested(check: Check) -> None:
    """Pre-hooks and full hooks mark begin and end of each module's backward, nested as the modules are."""
    expected = ["begin container", "begin last", "end last", "begin first", "end first", "end container"]
    for name, given in (("requires grad", leaf(1.0)), ("requires no grad", torch.tensor([1.0]))):
        log: list[str] = []
        first, last = weighted(2.0), weighted(3.0)
        outer = nn.Sequential(first, last)
        for module, label in ((outer, "container"), (first, "first"), (last, "last")):
            module.register_full_backward_pre_hook(noting(log, f"begin {label}"))
            module.register_full_backward_hook(noting(log, f"end {label}"))
        outer(given).sum().backward()
        check.order(f"events where the input {name}", log, expected)


@program("BF-16", PROMISE, since="2.0", source="pytorch#189093")
def no_warning_for_pre_hooks(check: Check) -> None:
    """No warning about full backward hooks comes where a module has pre-hooks alone, its own or global ones."""
    calls: list[Any] = []
    globally = torch.nn.modules.module.register_module_full_backward_pre_hook
    hooked = weighted(3.0)
    with hooked.register_full_backward_pre_hook(lambda *args: calls.append(args)):
        check.silent("a pre-hook of the module", hooked(torch.tensor([2.0])).sum().backward, EARLY)
    with globally(lambda *args: calls.append(args)):
        check.silent("a global pre-hook", hooked(torch.tensor([2.0])).sum().backward, EARLY)
    check.calls("pre-hooks", len(calls), 2)
