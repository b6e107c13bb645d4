"""How long do backward hooks, and what they hold, live: after removal, after backward, and in several threads?

Removal between forward and backward, or by the hook itself; memory after backward; modules that are gone by then;
threads that share a graph, or that register at once; each program is a fault that was found in some release.
"""

from __future__ import annotations

import gc
import sys
import weakref
from contextlib import suppress
from threading import Barrier, BrokenBarrierError, Thread
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check, NotRun
from hookcheck.programs.nets import leaf, net, times, weighted
from hookcheck.programs.program import program


@program("BL-01", PIN, since="1.7", source="pytorch#36372")
def removal_before_the_second_derivative(check: Check) -> None:
    """A legacy backward hook that is removed after the first backward is not called in that of the gradient."""
    calls: list[Any] = []
    squared, x = net(lambda module, x: x * x), leaf(3.0)
    handle = squared.register_backward_hook(lambda *args: calls.append(args))
    (first,) = torch.autograd.grad((squared(x) ** 2).sum(), x, create_graph=True)
    check.calls("first backward", len(calls), 1)
    handle.remove()
    (second,) = torch.autograd.grad(first.sum(), x)
    check.equal("derivatives of x⁴", (first, second), ([4 * 27], [12 * 9]))
    check.calls("both backwards", len(calls), 1)
    squared(x).sum().backward()
    check.calls("one more forward and backward", len(calls) - 2, 0)


@program("BL-02", PROMISE, since="1.7", source="pytorch#58354", alone=True)
def a_tensor_hook_that_removes_itself(check: Check) -> None:
    """A tensor's hook may remove itself and return a gradient: that is used, and the process lives on."""
    x = leaf(1.0, 2.0)
    handles: list[Any] = []

    def install() -> None:
        def hook(grad: Any) -> Any:
            handles.pop().remove()
            return 10 * grad

        handles.append(x.register_hook(hook))

    install()
    (x * x).sum().backward()
    check.equal("gradient of the first backward", x.grad, [20, 40])
    x.grad = None
    (x * x).sum().backward()
    check.equal("gradient of the second backward", x.grad, [2, 4])


@program("BL-03", PIN, since="1.8", source="pytorch#25723")
def removal_before_backward(check: Check) -> None:
    """A full backward hook that is removed is not called any more, also where forward came before the removal."""
    calls: list[str] = []
    tripled = times(3.0)
    handle = tripled.register_full_backward_hook(lambda *args: calls.append("removed"))
    tripled.register_full_backward_hook(lambda *args: calls.append("kept"))
    y = tripled(leaf(1.0))
    handle.remove()
    y.sum().backward()
    check.order("hooks of the forward before", calls, ["kept"])
    calls.clear()
    tripled(leaf(1.0)).sum().backward()
    check.order("hooks of the forward after", calls, ["kept"])


@program("BL-04", PROMISE, since="1.8", source="pytorch#61250")
def hooks_that_remove_themselves(check: Check) -> None:
    """Full backward hooks that remove themselves run once each, and the others run every time."""
    calls: list[str] = []
    handles: dict[str, Any] = {}
    tripled = times(3.0)

    def once(name: str) -> Any:
        def hook(module: Any, grad_input: Any, grad_output: Any) -> None:
            calls.append(name)
            handles.pop(name).remove()

        return hook

    for name in ("first", "third"):
        handles[name] = tripled.register_full_backward_hook(once(name))
        tripled.register_full_backward_hook(lambda *args: calls.append("kept"))
    for expected in (["first", "kept", "third", "kept"], ["kept", "kept"]):
        tripled(leaf(1.0)).sum().backward()
        check.order(f"{len(expected)} hooks", calls, expected)
        calls.clear()


def helpers() -> int:
    """How many live objects link a module's inputs and outputs for full backward hooks."""
    gc.collect()
    helper = torch.utils.hooks.BackwardHook
    return sum(type(thing) is helper for thing in gc.get_objects())


@program("BL-05", PROMISE, since="1.8", source="pytorch#71068; pytorch#74831")
def nothing_is_left_of_an_iteration(check: Check) -> None:
    """Iterations of forward and backward leave nothing behind that a full backward hook needed."""
    hooked = weighted(3.0)
    hooked.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    for name, keep in (("backward", False), ("backward with create_graph", True)):
        before = helpers()
        for _ in range(3):
            x = leaf(2.0)
            loss = (hooked(x) ** 2).sum()
            loss.backward(create_graph=keep)
            last = x.grad.item(), hooked.weight.grad.item()
            x.grad = hooked.weight.grad = None
        del x, loss
        check.equal(f"gradients of {name}", last, (2 * 6.0 * 3, 2 * 6.0 * 2))
        check.calls(f"helpers left by three times {name}", helpers() - before, 0)


def freed_after_backward(given: Any, create_graph: bool, seen: list[float]) -> bool:
    """Whether a module is gone with the last reference; ``seen`` gets the grad_output of its full backward hook."""
    hooked = weighted(3.0)
    hooked.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append(grad_output[0].item()))
    (hooked(given) ** 2).sum().backward(create_graph=create_graph)
    alive = weakref.ref(hooked)
    given.grad = hooked.weight.grad = None
    del hooked, given
    gc.collect()
    return alive() is None


@program("BL-06", PROMISE, since="1.8", source="pytorch#82528")
def a_hooked_module_is_freed(check: Check) -> None:
    """A module with a full backward hook is freed with the last reference, also after a backward with create_graph."""
    seen: list[float] = []
    check.true("freed after backward", freed_after_backward(leaf(2.0), False, seen))
    check.true("freed after backward with create_graph", freed_after_backward(leaf(2.0), True, seen))
    check.equal("grad_output in both", seen, [12, 12], "call")  # 2 * 3 * 2
    data = torch.tensor([2.0])
    check.true("freed after backward of data with create_graph", freed_after_backward(data, True, []))


@program("BL-07", PROMISE, since="2.0", source="pytorch#102859")
def multi_grad_hooks_hold_no_tensors(check: Check) -> None:
    """A tensor with a multi-grad hook is freed with the last reference, though the graph and the hook live on."""
    seen: list[Any] = []
    x = leaf(1.0)
    a, b = 2 * x, 3 * x
    torch.autograd.graph.register_multi_grad_hook((a, b), lambda grads: seen.append(tuple(grads)))
    loss = (5 * a + 7 * b).sum()
    alive = weakref.ref(a), weakref.ref(b)
    del a, b
    check.equal("tensors that are alive", [ref() is not None for ref in alive], [False, False])
    gc.collect()
    loss.backward()
    check.equal("what the hook saw", seen, [([5], [7])])


@program("BL-08", PROMISE, since="1.8", source="pytorch#78580")
def a_module_that_is_gone_by_backward(check: Check) -> None:
    """The full backward hook of a module that only the graph knows by then fires once, and is given the module."""
    seen: list[Any] = []
    hooked = weighted(3.0)
    hooked.register_full_backward_hook(lambda module, *gradients: seen.append((type(module).__name__, *gradients)))
    x = leaf(2.0)
    loss = hooked(x).sum()
    del hooked
    gc.collect()
    loss.backward()
    check.equal("calls", seen, [("Net", ([3],), ([1],))])
    check.equal("gradient of the input", x.grad, [3])


@program("BL-09", PROMISE, since="1.8", source="pytorch#46163")
def two_threads_on_one_graph(check: Check) -> None:
    """Where two threads run backward on one graph at once, each hook call has the gradients of one of them."""
    if check.device != "cpu":
        raise NotRun("one thread runs all backwards of a device, so two threads cannot be in it at once")
    seen: list[tuple[float, float]] = []
    gradients: list[float] = []
    both = Barrier(2, timeout=20)

    def meet(grad: Any) -> None:
        both.wait()  # each thread is between the module's output and its input now

    def forward(module: Any, x: Any) -> Any:
        inner = 3 * x
        inner.register_hook(meet)
        return 1 * inner

    tripled, x = net(forward), leaf(1.0)
    tripled.register_full_backward_hook(lambda module, gi, go: seen.append((gi[0].item(), go[0].item())))
    y = tripled(x).sum()

    def run(scale: float) -> None:
        (gradient,) = torch.autograd.grad(y * scale, x, retain_graph=True)
        gradients.append(gradient.item())

    threads = [Thread(target=run, args=(scale,)) for scale in (1.0, 10.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check.equal("gradients of the two threads", sorted(gradients), [3, 30])
    check.calls("hook", len(seen), 2)
    check.true("each call has the gradients of one backward", all(grad == 3 * after for grad, after in seen))


@program("BL-10", PROMISE, since="1.7", source="pytorch#128272")
def registrations_in_two_threads(check: Check) -> None:
    """Threads that register hooks at once lose none, whichever way the interpreter switches between them."""
    init = torch.utils.hooks.RemovableHandle.__init__.__code__
    hooked = times(3.0)
    both = Barrier(2)

    def in_step(frame: Any, event: str, argument: Any) -> Any:
        """Has each line that makes a handle be run by both threads before either goes on, unless a lock is held."""
        if frame.f_code is not init:
            return None
        with suppress(BrokenBarrierError):
            both.wait(timeout=10)
        return in_step

    def register() -> None:
        sys.settrace(in_step)
        hooked.register_forward_hook(lambda module, args, output: None)
        sys.settrace(None)

    threads = [Thread(target=register) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check.calls("hooks that two threads registered", len(hooked._forward_hooks), 2)

    alone = times(3.0)
    handles = [alone.register_forward_hook(lambda module, args, output: None) for _ in range(20)]
    check.calls("hooks that one thread registered", len(alone._forward_hooks), 20)
    for handle in handles:
        handle.remove()
    check.calls("hooks after the removal of each", len(alone._forward_hooks), 0)
