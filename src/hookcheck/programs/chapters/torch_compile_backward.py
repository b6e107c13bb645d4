"""What becomes of backward hooks under torch.compile? They break the graph, or wait for compiled autograd.

Full backward hooks break the graph, unless compiled autograd captures the backward as a whole; hooks on tensors and
parameters, which live outside the graph, run as in eager.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE, UNSPECIFIED
from hookcheck.probe.lazy import torch
from hookcheck.programs.chapters.torch_compile import (
    BACKENDS,
    CALL_HOOKS,
    chain,
    derivative,
    dynamo,
    fresh,
    linear,
    recording,
    scaling,
)
from hookcheck.programs.check import Check
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
