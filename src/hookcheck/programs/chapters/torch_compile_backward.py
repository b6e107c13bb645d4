"""What becomes of backward hooks under torch.compile? They break the graph, or wait for compiled autograd.

Full backward hooks break the graph, unless compiled autograd captures the backward as a whole; hooks on tensors and
parameters, which live outside the graph, run as in eager.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE, UNSPECIFIED
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.compiling import (
    BACKENDS,
    CALL_HOOKS,
    HOOKED,
    chain,
    derivative,
    dynamo,
    fresh,
    linear,
    recording,
    scaling,
)
from hookcheck.programs.program import program


@program("TC-04", UNSPECIFIED, since="2.1", source=CALL_HOOKS)
@fresh()
def backward_hooks_work(check: Check) -> None:
    """Full backward hooks and pre-hooks generally work, at the cost of graph breaks."""
    for backend in BACKENDS:
        log: list[Any] = []
        net = chain()
        net.parts[0].register_full_backward_pre_hook(lambda module, grad_output: (3 * grad_output[0],))
        net.parts[0].register_full_backward_hook(_noting(log, "hook"))
        call = torch.compile(net, backend=backend)
        # The loss is 4x: 2 arrives at the first module, 3·2 enters it, 2·6 leaves it.
        check.equal(f"{backend}: gradient", derivative(call, 1.0), 12.0)
        check.order(f"{backend}: calls", log, [("hook", 12.0, 6.0)])


def _noting(log: list[Any], name: str) -> Callable[..., None]:
    """A full backward hook that notes its name and gradients."""

    def hook(module: Any, grad_input: Any, grad_output: Any) -> None:
        log.append((name, grad_input[0].item(), grad_output[0].item()))

    return hook


@program("TC-05", UNSPECIFIED, since="2.1", source=CALL_HOOKS)
@fresh()
def backward_hooks_are_called_at_some_time(check: Check) -> None:
    """When backward hooks of compiled modules are called may differ from eager; how often, and with what, does not."""
    log: list[Any] = []
    net = chain(3)
    for index, part in enumerate(net.parts):
        part.register_full_backward_hook(_noting(log, str(index)))
    call = torch.compile(lambda x: net(x), backend="aot_eager")
    check.equal("gradient", derivative(call, 1.0), 8.0)
    check.equal("what the hooks got, in any order", sorted(log), [("0", 8.0, 4.0), ("1", 4.0, 2.0), ("2", 2.0, 1.0)])


@program("TC-08", PROMISE, since="2.4", source="Compiled Autograd tutorial, 'Compiled Autograd addresses limitations'")
@fresh()
def compiled_autograd_captures_hooks(check: Check) -> None:
    """The backward that is captured ahead of time holds no backward hooks; the one of compiled autograd holds them."""
    graphs: list[list[str]] = []
    net = _negated()
    ahead = import_module("torch._dynamo.backends.common").aot_autograd(fw_compiler=recording(graphs))
    check.equal("gradient of x, captured ahead", derivative(torch.compile(net, backend=ahead), 3.0), 2.0)
    check.equal("gradient of w, captured ahead", net.w.grad, -3.0)
    check.calls("graphs captured ahead", len(graphs), 2)
    check.calls("hooks in them", _calls(graphs, "neg"), 0)

    graphs.clear()
    net = _negated()
    net.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0].square(),))
    x = torch.tensor(3.0, requires_grad=True)
    with dynamo().config.patch(compiled_autograd=True):
        torch.compile(lambda: net(x).backward(), backend=recording(graphs))()
    check.equal("gradient of x under compiled autograd", x.grad, 4.0)
    check.equal("gradient of w under compiled autograd", net.w.grad, -3.0)
    check.calls("tensor hooks in its graphs", _calls(graphs, "neg"), 1)
    check.calls("module hooks in its graphs", _calls(graphs, "square"), 1)


def _negated() -> Any:
    """A module that gives w·x, with a hook that negates the gradient of w."""
    net = scaling()
    net.w.register_hook(lambda grad: grad.neg())
    return net


def _calls(graphs: list[list[str]], name: str) -> int:
    """How often graphs call what has this name."""
    return sum(name in target.split(".") for graph in graphs for target in graph)


@program("TC-11", PROMISE, since="2.1", source="pytorch#115750", alone=True)  # as TC-12
@fresh()
def a_later_backward_hook_counts(check: Check) -> None:
    """A full backward hook that is registered after compiling changes the gradient, as it does in eager."""
    net = linear()
    call = torch.compile(lambda x: net(x), backend="aot_eager", fullgraph=True)
    check.equal("gradient without the hook", derivative(call, 1.0), 2.0)
    net.register_full_backward_hook(lambda module, grad_input, grad_output: (2 * grad_input[0],))
    check.equal("gradient with it", derivative(call, 1.0), 4.0)
    check.equal("gradient with it, compiled anew", derivative(torch.compile(net, backend="aot_eager"), 1.0), 4.0)


@program("TC-12", PROMISE, since="2.1", source="pytorch#117265", alone=True)  # 2.2 keeps what it skipped once
@fresh()
def a_later_backward_pre_hook_counts(check: Check) -> None:
    """A full backward pre-hook that is registered after compiling changes the gradient, as it does in eager."""
    net = linear()
    call = torch.compile(lambda x: net(x), backend="aot_eager", fullgraph=True)
    check.equal("gradient without the hook", derivative(call, 1.0), 2.0)
    net.register_full_backward_pre_hook(lambda module, grad_output: (2 * grad_output[0],))
    check.equal("gradient with it", derivative(call, 1.0), 4.0)
    check.equal("gradient with it, compiled anew", derivative(torch.compile(net, backend="aot_eager"), 1.0), 4.0)


@program("TC-13", PIN, since="2.1", source="pytorch#133303")
@fresh()
def a_backward_hook_is_captured(check: Check) -> None:
    """A module with a full backward hook compiles as one graph, and the hook does what it does in eager."""
    net = scaling()
    net.register_full_backward_hook(lambda module, grad_input, grad_output: (10 * grad_input[0],))
    check.equal("gradient, with graph breaks", derivative(torch.compile(net, backend="eager"), 3.0), 20.0)
    dynamo().reset()
    whole = torch.compile(lambda x: net(x), backend="eager", fullgraph=True)
    result = check.works("forward and backward, as one graph", lambda: derivative(whole, 3.0))
    if result is not None:
        check.equal("gradient, as one graph", result, 20.0)


@program("TC-14", PROMISE, since="2.1", source="pytorch#91468")
@fresh()
def gradients_are_retained(check: Check) -> None:
    """Tensors on which a compiled function calls retain_grad have their gradients after backward, as in eager."""

    def function(x: Any) -> Any:
        y = x.clone()
        y.retain_grad()
        z = 2 * y
        z.retain_grad()
        return z, y

    x = torch.tensor(3.0, requires_grad=True)
    z, y = torch.compile(function, backend="aot_eager")(x)
    (5 * z).backward()
    check.equal("gradient of the leaf", x.grad, 10.0)
    check.equal("gradient of the first tensor", y.grad, 10.0)
    check.equal("gradient of the second tensor", z.grad, 5.0)


@program(
    "TC-15",
    PROMISE,
    since="2.1",
    source="torch.Tensor.register_post_accumulate_grad_hook; pytorch#112326",
)
@fresh()
def post_accumulate_hooks_work_under_compile(check: Check) -> None:
    """A post-accumulate-grad hook is called once a backward, be it registered before or after compiling."""
    for backend in BACKENDS:
        log: list[Any] = []
        net = scaling()
        net.w.register_post_accumulate_grad_hook(_noting_grad(log, "before"))
        call = torch.compile(net, backend=backend)
        call(torch.tensor(3.0)).backward()
        net.w.register_post_accumulate_grad_hook(_noting_grad(log, "after"))
        call(torch.tensor(5.0)).backward()
        check.order(f"{backend}: calls", log, [("before", 3.0), ("before", 8.0), ("after", 8.0)])


def _noting_grad(log: list[Any], name: str) -> Callable[[Any], None]:
    """A post-accumulate-grad hook that notes its name and the gradient."""
    return lambda parameter: log.append((name, parameter.grad.item()))


ORDER = "Autograd mechanics, 'Backward Hooks execution'"
PLAIN = "without torch.compile"


def compiled(function: Callable[..., Any], way: str) -> Callable[..., Any]:
    """The function, compiled for a backend, or as it is."""
    return function if way == PLAIN else torch.compile(function, backend=way)


def total(given: Any) -> Any:
    """The sum of one tensor or of each in a tuple."""
    return sum(part.sum() for part in given) if isinstance(given, tuple) else given.sum()


@program("TC-17", PROMISE, since="2.11", source="torch.Tensor.register_hook; pytorch#172126")
@fresh()
def compiled_code_registers_hooks(check: Check) -> None:
    """Hooks that compiled code registers, on what it is given and on what it computes, act as they do in eager."""
    for way in (PLAIN, "aot_eager"):
        for name, (function, gradient) in HOOKED.items():
            call = compiled(function, way)
            observed = check.works(f"{way}: {name}", lambda call=call: derivative(lambda x: total(call(x)), 1.0))
            if observed is not None:
                check.equal(f"{way}: gradient with {name}", observed, gradient)
    for way, factors in ((PLAIN, (10.0, 100.0)), ("eager", (10.0, 100.0)), ("aot_eager", (10.0,))):
        log: list[Any] = []
        factor = [10.0]
        call = compiled(_registering(log, factor), way)
        for factor[0] in factors:
            x, w = (torch.tensor(value, requires_grad=True) for value in (3.0, 2.0))
            result, early = call(x, w)
            (4 * result + early).backward()
            # 4 arrives at the result, 4 + 1 leaves it: (4 + 1)·w + 3 at the inner one, by the factor, twice, and 5.
            check.equal(f"{way}: gradient of x with a factor of {factor[0]}", x.grad, 13 * factor[0] * 2 + 5)
        check.order(f"{way}: gradients of w, as hooks see them", log, [30.0 for _ in factors])  # 5·2x


def _registering(log: list[Any], factor: list[float]) -> Callable[[Any, Any], Any]:
    """A function that registers hooks, one of which it takes off again."""

    def function(x: Any, w: Any) -> Any:
        x.register_hook(lambda grad: grad + 5)
        w.register_hook(lambda grad: 7 * grad).remove()
        w.register_post_accumulate_grad_hook(lambda leaf: log.append(leaf.grad.item()))
        inner = 2 * x
        early = 3 * inner
        inner.register_hook(lambda grad: factor[0] * grad)
        result = inner * w
        result.register_hook(lambda grad: grad + 1)
        result.register_hook(lambda grad: None)
        return result, early

    return function


def _adding(x: Any) -> Any:
    """2x, with a hook that adds 1 to the gradient of that."""
    y = 2 * x
    y.register_hook(lambda grad: grad + 1)
    return y


@program("TC-18", PROMISE, since="2.11", source=f"torch.Tensor.register_hook; {ORDER}")
@fresh()
def later_hooks_run_later(check: Check) -> None:
    """A hook on the result of a compiled function runs after those that the function registered on it."""
    for way in (PLAIN, "aot_eager"):
        x = torch.tensor(1.0, requires_grad=True)
        y = compiled(_adding, way)(x)
        y.register_hook(lambda grad: 10 * grad)
        (3 * y).backward()
        check.equal(f"{way}: gradient", x.grad, 80.0)  # (3 + 1)·10·2


@program(
    "TC-19", PROMISE, since="2.11", source="torch.Tensor.retain_grad; Autograd mechanics, 'Backward Hooks execution'"
)
@fresh()
def gradients_come_from_after_hooks(check: Check) -> None:
    """A result's gradient that is retained or asked for is what the hooks that compiled code registered made of it."""

    def retaining(x: Any) -> Any:
        y = _adding(x)
        y.retain_grad()
        return y

    for way in (PLAIN, "aot_eager"):
        call = compiled(_adding, way)
        x = torch.tensor(1.0, requires_grad=True)
        y = call(x)
        y.retain_grad()
        (3 * y).backward()
        check.equal(f"{way}: gradient of x", x.grad, 8.0)
        check.equal(f"{way}: retained", y.grad, 4.0)  # 3 + 1
        y = call(x)
        check.equal(f"{way}: asked for", torch.autograd.grad(3 * y, y)[0], 4.0)
        y = compiled(retaining, way)(x)
        (3 * y).backward()
        check.equal(f"{way}: retained by compiled code", y.grad, 4.0)


@program("TC-20", PIN, since="2.11", source="torch.Tensor.register_hook, 'called every time a gradient is computed'")
@fresh()
def hooks_see_the_state_of_backward(check: Check) -> None:
    """A hook that compiled code registers sees what is there when backward runs, not what was there in forward."""
    for way in (PLAIN, *BACKENDS):
        state = {"factor": 10.0}

        def function(x: Any, state: dict[str, float] = state) -> Any:
            y = 2 * x
            y.register_hook(lambda grad: state["factor"] * grad)
            return y

        x = torch.tensor(1.0, requires_grad=True)
        y = compiled(function, way)(x)
        state["factor"] = 100.0
        y.backward()
        check.equal(f"{way}: gradient", x.grad, 200.0)


@program("TC-28", PIN, since="2.11", source="torch.autograd.grad, create_graph; torch.Tensor.register_hook")
@fresh()
def hooks_see_the_grad_mode_of_backward(check: Check) -> None:
    """A hook that compiled code registers sees whether its backward records gradients: with ``create_graph`` alone."""

    def function(x: Any) -> Any:
        y = 2 * x
        y.register_hook(lambda grad: grad * (100 if torch.is_grad_enabled() else 10))
        return 3 * y

    for way in (PLAIN, *BACKENDS):
        call = compiled(function, way)
        for create_graph, gradient in ((False, 60.0), (True, 600.0)):  # 2·3, times 10 or 100
            x = torch.tensor(1.0, requires_grad=True)
            (observed,) = torch.autograd.grad(call(x), x, create_graph=create_graph)
            check.equal(f"{way}, create_graph={create_graph}: gradient", observed.detach(), gradient)


@program("TC-21", PROMISE, since="2.11", source="torch.utils.hooks.RemovableHandle; torch.Tensor.register_hook")
@fresh()
def compiled_code_removes_hooks(check: Check) -> None:
    """Compiled code can remove a hook that it registered on what it computes; what is left acts."""

    def function(x: Any) -> Any:
        y = _adding(x)
        y.register_hook(lambda grad: 10 * grad).remove()
        return y

    for way in (PLAIN, *BACKENDS):
        result = check.works(f"{way}: it runs", lambda way=way: derivative(compiled(function, way), 1.0))
        if result is not None:
            check.equal(f"{way}: gradient", result, 4.0)  # (1 + 1)·2


@program("TC-22", PROMISE, since="2.11", source="torch.Tensor.register_post_accumulate_grad_hook, 'leaf tensor'")
@fresh()
def only_leaves_have_post_accumulate_hooks(check: Check) -> None:
    """Compiled code cannot register a post-accumulate-grad hook on what it computes: only leaves have such hooks."""

    def function(x: Any) -> Any:
        y = 2 * x
        y.register_post_accumulate_grad_hook(lambda leaf: None)
        return y

    for way in (PLAIN, *BACKENDS):
        act = partial(compiled(function, way), torch.ones(1, requires_grad=True))
        check.raises(f"{way}: registering", RuntimeError, act, "non-leaf")


@program("TC-26", PROMISE, since="2.6", source="Compiled Autograd tutorial; pytorch#120382")
@fresh()
def compiled_autograd_runs_hooks_of_compiled_code(check: Check) -> None:
    """Under compiled autograd, hooks that one graph of forward registers run in backward, each on what it is on."""
    net = scaling()
    log: list[str] = []
    for name, factor in (("first", 2), ("second", 3)):
        net.register_full_backward_hook(
            lambda module, inputs, outputs, name=name, factor=factor: _scaled(
                log, f"{name} {type(module).__name__}", inputs, factor
            )
        )
        net.register_full_backward_pre_hook(
            lambda module, outputs, name=name, factor=factor: _scaled(log, f"{name} pre", outputs, factor)
        )

    def function(x: Any) -> Any:
        y = 5 * x
        y.register_hook(lambda grad: grad + 1)
        z = net(y)
        z.register_hook(lambda grad: grad + 2)
        return z

    x = torch.tensor(1.0, requires_grad=True)
    with dynamo().config.patch(compiled_autograd=True):
        torch.compile(lambda: function(x).backward(), backend="eager")()
    # 1 + 2 at z, 2·3 times that by pre-hooks, 2 by the module, 2·3 by hooks, and 1 more at y.
    check.equal("gradient", x.grad, 5 * (3 * 6 * 2 * 6 + 1.0))
    check.order("calls", log, ["first pre", "second pre", "first Scale", "second Scale"])


def _scaled(log: list[str], name: str, gradients: Any, factor: int) -> tuple[Any, ...]:
    """Notes a name and gives gradients times a factor."""
    log.append(name)
    return (factor * gradients[0],)
