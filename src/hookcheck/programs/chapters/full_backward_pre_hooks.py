"""What do full backward pre-hooks of a module promise?

A full backward pre-hook is called as ``hook(module, grad_output)`` before the backward of the module runs; a tuple that
it returns takes the place of ``grad_output`` in all that follows, the gradients of parameters included.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.host_changes import offered
from hookcheck.programs.nets import leaf, net, times, weighted
from hookcheck.programs.program import program

PRE = "torch.nn.Module.register_full_backward_pre_hook"


@program("BP-01", PROMISE, since="2.0", source=PRE)
def called_with_grad_output(check: Check) -> None:
    """A full backward pre-hook gets (module, grad_output), a tuple, whenever gradients of the module are computed."""
    seen: list[tuple[Any, ...]] = []
    hooked = weighted(3.0)
    hooked.register_full_backward_pre_hook(lambda *args: seen.append(args))
    x = leaf(2.0)
    y = 5 * hooked(x)

    def state(name: str, expected: int) -> None:
        check.calls(f"calls for {name}", len(seen), expected)
        check.true(f"module for {name}", all(args[0] is hooked for args in seen), "argument")
        check.equal(f"grad_output for {name}", [args[1:] for args in seen], [(([5],),)] * expected, "argument")
        seen.clear()

    torch.autograd.grad(y, x, retain_graph=True)
    state("the input's gradient", 1)
    torch.autograd.grad(y, hooked.weight, retain_graph=True)
    state("the weight's gradient alone", 1)
    if offered((2, 1)):
        torch.autograd.grad(y, (x, leaf(1.0)), retain_graph=True, materialize_grads=True)
        state("the input's gradient beside one of zeros", 1)
    y.backward(inputs=[x], retain_graph=True)
    state("the input as what backward is asked for", 1)
    y.backward(retain_graph=True)
    y.backward()
    state("two backwards", 2)
    (5 * hooked(torch.tensor([2.0]))).backward()
    state("an input that requires no grad", 1)
    (5 * (hooked(x) + hooked(x))).backward()
    state("two calls of the module", 2)

    pair = net(lambda module, x: (2 * x, 3 * x))
    pair.register_full_backward_pre_hook(lambda *args: seen.append(args))
    a, b = pair(leaf(1.0))
    (4 * a + 5 * b).backward()
    check.equal("grad_output of two outputs", [args[1:] for args in seen], [(([4], [5]),)], "argument")


@program("BP-02", PROMISE, since="2.0", source=PRE)
def a_tuple_replaces_grad_output(check: Check) -> None:
    """A tuple that a full backward pre-hook returns takes the place of grad_output in all that follows."""
    for name, hook, change in (
        ("None", lambda module, grad_output: None, 1),
        ("a tuple", lambda module, grad_output: (10 * grad_output[0],), 10),
    ):
        seen: list[Any] = []
        x, before, hooked = leaf(1.0, 2.0), weighted(2.0), weighted(3.0)
        hooked.register_full_backward_pre_hook(hook)
        hooked.register_full_backward_hook(lambda module, gi, go, seen=seen: seen.append((gi, go)))
        hooked(before(x)).sum().backward()
        check.equal(f"gradient of the input under {name}", x.grad, [6 * change] * 2)  # 2 * 3
        check.equal(f"gradient of its own weight under {name}", hooked.weight.grad, 6.0 * change)  # 2 * (1 + 2)
        check.equal(f"gradient of a weight before it under {name}", before.weight.grad, 9.0 * change)  # 3 * (1 + 2)
        check.equal(f"what a full hook sees under {name}", seen, [(([3 * change] * 2,), ([change] * 2,))])

        hooked.weight.grad = None
        seen.clear()
        hooked(torch.tensor([4.0])).sum().backward()
        check.equal(f"what a full hook sees where no input requires grad under {name}", seen, [((None,), ([change],))])
        check.equal(f"weight's gradient where no input requires grad under {name}", hooked.weight.grad, 4.0 * change)

    x, pair = leaf(1.0), net(lambda module, x: (2 * x, 3 * x))
    pair.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] + 10, grad_output[1] + 100))
    sum(pair(x)).backward()
    check.equal("gradient through two outputs", x.grad, [2 * 11 + 3 * 101])

    x, tripled = leaf(1.0), times(3.0)
    tripled.register_full_backward_pre_hook(lambda module, grad_output: [10 * grad_output[0]])
    tripled(x).backward()
    check.equal("gradient of the input under a list", x.grad, [30])


@program("BP-03", PROMISE, since="2.0", source=f"{PRE}, signature of the hook (since 2.10)")
def a_tensor_replaces_grad_output(check: Check) -> None:
    """A bare tensor that the pre-hook of a module with one output returns takes the place of grad_output."""
    for shape in ((), (1,), (3,), (1, 2), (2, 3)):
        for name, wrap in (("a tensor", lambda tensor: tensor), ("a tuple", lambda tensor: (tensor,))):
            x, tripled = torch.ones(shape, requires_grad=True), times(3.0)
            tripled.register_full_backward_pre_hook(lambda module, grad_output, wrap=wrap: wrap(10 * grad_output[0]))
            act = partial(torch.autograd.grad, tripled(x).sum(), x)
            gradient = check.works(f"backward for the shape {shape} under {name}", act)
            if gradient is not None:
                check.equal(f"gradient for the shape {shape} under {name}", gradient, (torch.full(shape, 30.0),))


@program("BP-04", PROMISE, since="2.0", source=PRE)
def none_for_what_is_no_tensor(check: Check) -> None:
    """In the grad_output of a full backward pre-hook, outputs that are no tensors stand as None at their places."""
    seen: list[Any] = []
    x, mixed = leaf(1.0), net(lambda module, x: ("text", 2 * x, 7, 3 * x, None))
    mixed.register_full_backward_pre_hook(lambda module, grad_output: seen.append(grad_output))
    outputs = mixed(x)
    (4 * outputs[1] + 5 * outputs[3]).backward()
    check.equal("grad_output", seen, [(None, [4], None, [5], None)])
    check.equal("outputs that are no tensors", (outputs[0], outputs[2], outputs[4]), ("text", 7, None))
    check.equal("gradient of the input", x.grad, [2 * 4 + 3 * 5])
    x.grad = None
    mixed.register_full_backward_pre_hook(lambda module, g: (None, 10 * g[1], None, g[3], None))
    outputs = mixed(x)
    check.works("backward under a hook that returns as many", (4 * outputs[1] + 5 * outputs[3]).backward)
    check.equal("gradient of the input under that hook", x.grad, [2 * 40 + 3 * 5])


@program("BP-05", PIN, since="2.0", source=PRE)
def changes_in_place_reach_the_module(check: Check) -> None:
    """A full backward pre-hook that breaks the rule and changes grad_output in place has changed the gradients."""

    def change(module: Any, grad_output: Any) -> None:
        grad_output[0].mul_(10)

    x, hooked = leaf(2.0), weighted(3.0)
    hooked.register_full_backward_pre_hook(change)
    hooked(x).sum().backward()
    check.equal("gradient of the input", x.grad, [30])
    check.equal("gradient of the weight", hooked.weight.grad, 20.0)


@program("BP-06", PROMISE, since="2.0", source=PRE)
def views_go_in_and_out(check: Check) -> None:
    """While a full backward pre-hook is attached, ``forward`` receives and the caller is returned views of tensors."""
    inside: list[Any] = []

    def forward(module: Any, *args: Any) -> Any:
        inside[:] = [*args, 2 * args[0]]
        return inside[-1]

    hooked = net(forward)
    handle = hooked.register_full_backward_pre_hook(lambda module, grad_output: None)
    x, data = leaf(1.0, 2.0), torch.tensor([3.0, 4.0])

    def state(name: str, view: Any, of: Any) -> None:
        check.true(f"{name} is a view and another object", view is not of and view._is_view(), "argument")
        check.equal(f"memory of {name}", view.data_ptr(), of.data_ptr(), "argument")

    y = hooked(x, data)
    state("an argument that requires grad", inside[0], x)
    state("an argument beside it", inside[1], data)
    state("an output", y, inside[-1])
    hooked(data)
    state("an argument where none requires grad", inside[0], data)
    handle.remove()
    y = hooked(x)
    check.true("without a hook both are the same", inside[0] is x and inside[-1] is y, "argument")


@program("BP-07", PROMISE, since="2.0", source=f"{PRE}, warning")
def inputs_must_not_change_in_place(check: Check) -> None:
    """Modifying an input in place raises while a full backward pre-hook is attached."""
    adding = net(lambda module, x: x.add_(1))
    for name, x in (("requires grad", 2 * leaf(1.0)), ("requires no grad", torch.tensor([2.0]))):
        check.equal(f"output without a hook where the input {name}", adding(x), [3])
        with adding.register_full_backward_pre_hook(lambda module, grad_output: None):
            check.raises(f"with a hook where the input {name}", RuntimeError, partial(adding, x), "modified inplace")


@program("BP-08", PROMISE, since="2.0", source=f"{PRE}, 'prepend'")
def order_of_pre_hooks(check: Check) -> None:
    """Full backward pre-hooks run as registered, prepended ones before them, global ones first, and full hooks last."""
    log: list[str] = []

    def named(name: str) -> Any:
        return lambda module, *gradients: log.append(name)

    def run(name: str, expected: str) -> None:
        log.clear()
        tripled(leaf(1.0)).sum().backward()
        check.order(name, log, list(expected))

    tripled = times(3.0)
    tripled.register_full_backward_hook(named("f"))
    tripled.register_full_backward_pre_hook(named("a"))
    tripled.register_full_backward_pre_hook(named("b"))
    run("as registered", "abf")
    prepended = tripled.register_full_backward_pre_hook(named("P"), prepend=True)
    run("one prepended", "Pabf")
    tripled.register_full_backward_pre_hook(named("Q"), prepend=True)
    run("the later prepended one is the first", "QPabf")
    prepended.remove()
    tripled.register_full_backward_pre_hook(named("c"))
    run("one removed and one appended", "Qabcf")
    globally = torch.nn.modules.module.register_module_full_backward_pre_hook
    with globally(named("G")), globally(named("H")):
        run("global ones", "GHQabcf")
    run("global ones removed", "Qabcf")


@program("BP-09", PROMISE, since="2.0", source=f"{PRE}; pytorch#190685")
def no_warning_about_full_hooks(check: Check) -> None:
    """Where no input requires grad, a full backward pre-hook alone brings no warning about full backward hooks."""
    calls: list[Any] = []
    for name, hooked in (("one output", weighted(3.0)), ("two", net(lambda m, x: (m.w * x, m.w * x), w=2.0))):
        hooked.register_full_backward_pre_hook(lambda *args: calls.append(args))
        outputs = hooked(torch.tensor([2.0]))
        loss = outputs if name == "one output" else sum(outputs)
        check.silent(f"backward of {name}", loss.backward, "hook is firing")
    check.calls("pre-hooks", len(calls), 2)
